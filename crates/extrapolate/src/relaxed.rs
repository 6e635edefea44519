//! From the proof under SC to one of the relaxed program.

use crate::boolean::{Cubes, Program};
use crate::cube::Cube;
use crate::engine::{Method, Work};
use crate::lift::{self, Mix, Proof};
use crate::sc::add_new;
use crate::step::Step;
use crate::vocabulary::Vocabulary;
use wattle_evidence::{Answer, Limits, Task};
use wattle_logic::Formula;
use wattle_model::{CellId, ThreadId};
use wattle_predicates::cegar::abstraction::Halt;
use wattle_predicates::cegar::reached;
use wattle_predicates::reduce::blur::Blur;
use wattle_predicates::reduce::{Symbol, System};

/// How long buffers without a static bound are.
enum Length {
    /// At most so many entries; more is an overflow.
    Most(usize),
    /// Any number, not all of them exact.
    Blurred(Blur),
}

impl Length {
    fn system<'i>(&self, task: &Task<'i>) -> System<'i> {
        let system = |k| System::new(task.instance, task.model, task.question(), k);
        match self {
            Length::Most(k) => system(*k),
            Length::Blurred(blur) => system(1).unbounded(Some(blur.clone())),
        }
    }

    /// The entries kept exact.
    fn k(&self) -> usize {
        match self {
            Length::Most(k) => *k,
            Length::Blurred(blur) => blur.keep.iter().copied().max().unwrap_or(0),
        }
    }
}

/// What is tried, and stays so when buffers become longer: an extrapolation that fails with short
/// buffers fails with longer ones.
struct Lifting {
    plans: Vec<Way>,
    /// Predicates that paths needed beside the extrapolated ones.
    extra: Vec<Formula>,
}

/// So often predicates are sought that say that no run fills a buffer; then buffers are made longer.
const MOST_SHORT: usize = 8;

/// What buffers of one length gave.
#[expect(clippy::large_enum_variant, reason = "there is one at a time")]
enum At {
    Answer(Answer),
    /// A buffer can be too short.
    Short,
    /// Blurred buffers forget too much: classes to split, threads to keep more stores of.
    Coarse(Vec<(CellId, i64)>, Vec<ThreadId>),
}

impl Work<'_> {
    /// The relaxed program, with longer and longer buffers where there is no static bound. The proof
    /// under SC may come out stronger.
    pub fn relaxed(&mut self, sc: &Task<'_>, proof: &mut Proof) -> Result<Answer, Halt> {
        let task = self.task;
        let most = self.engine.most_entries;
        let mut lifting = Lifting {
            plans: self.plans(proof.size),
            extra: Vec::new(),
        };
        let mut k = 1;
        while k <= most {
            match self.at(&Length::Most(k), sc, proof, &mut lifting)? {
                At::Answer(answer) => return Ok(answer),
                At::Short => k += 1,
                At::Coarse(..) => break,
            }
        }
        let mut blur = Blur::new(task.instance, 1, false);
        for _ in 0..self.engine.most_rounds {
            if !self.engine.fall_back {
                break;
            }
            match self.at(&Length::Blurred(blur.clone()), sc, proof, &mut lifting)? {
                At::Answer(answer) => return Ok(answer),
                At::Coarse(cuts, threads) if blur.refine(&cuts, &threads, most) => {}
                At::Coarse(..) | At::Short => break,
            }
        }
        let limits = Limits {
            buffered_stores: most as u32,
            cause: "a loop can store without a fence".into(),
        };
        let effort = self.effort;
        Ok(Answer::Bounded { limits, effort })
    }

    /// The relaxed program with buffers of this length.
    fn at(
        &mut self,
        length: &Length,
        sc: &Task<'_>,
        proof: &mut Proof,
        lifting: &mut Lifting,
    ) -> Result<At, Halt> {
        let task = self.task;
        let system = || length.system(task);
        let mut short = 0;
        let mut full = false;
        let mut tried: Vec<(Vec<Formula>, Cubes)> = Vec::new();
        for _ in 0..=self.engine.most_rounds {
            let mut paths = Vec::new();
            for (n, plan) in lifting.plans.clone().into_iter().enumerate() {
                let (graphs, buffers) = Program::parts(&system(), self.control)?;
                let (vocabulary, cubes) =
                    plan.vocabulary(&system(), &buffers, proof, &lifting.extra);
                let same = (vocabulary.atoms(), cubes.clone());
                if tried.contains(&same) {
                    continue;
                }
                tried.push(same);
                let parts = (graphs, buffers, vocabulary, cubes);
                match self.step(task, system(), (plan.method, length.k()), parts)? {
                    Step::Proved(mut program, certificate) => {
                        if self.wants_text {
                            let question = task.question();
                            let text = crate::print::program(&mut program, question, self.control)?;
                            self.text = Some(text);
                        }
                        let effort = self.effort;
                        return Ok(At::Answer(Answer::Unreachable {
                            certificate,
                            effort,
                        }));
                    }
                    Step::Run(start, events) => {
                        return Ok(At::Answer(reached(task, start, events, self.effort)));
                    }
                    Step::Overflow => {
                        lifting.plans.drain(..n);
                        return Ok(At::Short);
                    }
                    // Nothing bad, and no run fills a buffer: other plans need not be tried.
                    Step::Short(_) if short == MOST_SHORT => return Ok(At::Short),
                    Step::Short(found) => {
                        short += 1;
                        full = true;
                        paths = found;
                        break;
                    }
                    Step::Coarse(cuts, threads) => return Ok(At::Coarse(cuts, threads)),
                    Step::Spurious(found) => {
                        full = false;
                        paths = found;
                    }
                }
            }
            let before = lifting.extra.len();
            if self.engine.method == Method::None || !add_new(&mut lifting.extra, &paths) {
                if full {
                    return Ok(At::Short);
                }
                break;
            }
            self.strengthen(sc, &system(), proof, &lifting.extra[before..])?;
            let plan = |method| Way {
                method,
                mix: Mix::AllThreads,
                without_buffered: false,
                size: proof.size.max(2),
            };
            lifting.plans = match (self.engine.method, self.engine.fall_back) {
                (Method::Cubes, true) => vec![plan(Method::Cubes), plan(Method::Predicates)],
                (method, _) => vec![plan(method)],
            };
        }
        Err(Halt::Other(
            "the extrapolated predicates do not prove the program".into(),
        ))
    }

    /// What a relaxed path needs, said of memory, may make the proof under SC say more (dan-2013
    /// §6.3 did that by hand for the queue).
    fn strengthen(
        &mut self,
        sc: &Task<'_>,
        system: &System<'_>,
        proof: &mut Proof,
        new: &[Formula],
    ) -> Result<(), Halt> {
        let (_, buffers) = Program::parts(system, self.control)?;
        let mut predicates = proof.predicates.clone();
        for f in new.iter().flat_map(|f| lift::lowered(system, &buffers, f)) {
            if f.as_atom().is_some() && !predicates.contains(&f) {
                predicates.push(f);
            }
        }
        if let Step::Proved(program, _) = self.prove_with(sc, &predicates)? {
            *proof = program.proof();
        }
        Ok(())
    }

    /// What to try, in this order.
    fn plans(&self, size: usize) -> Vec<Way> {
        let plan = |method, mix, without_buffered| Way {
            method,
            mix,
            without_buffered,
            size,
        };
        let (one, all) = (Mix::OneThread, Mix::AllThreads);
        let mut plans = Vec::new();
        if self.engine.method == Method::None {
            plans.extend((size..=self.engine.cube_size).map(|size| Way {
                size,
                ..plan(Method::None, one, false)
            }));
        }
        if self.engine.method == Method::Cubes {
            plans.push(plan(Method::Cubes, one, true));
            plans.push(plan(Method::Cubes, one, false));
            plans.push(plan(Method::Cubes, all, false));
        }
        if self.engine.method == Method::Predicates || self.engine.fall_back {
            plans.push(plan(Method::Predicates, one, false));
        }
        plans
    }
}

/// One way to extrapolate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Way {
    pub method: Method,
    pub mix: Mix,
    /// Leave out cubes over buffered values (§6.3).
    pub without_buffered: bool,
    /// The size of cubes where all are tried.
    pub size: usize,
}

impl Way {
    pub fn vocabulary(
        &self,
        system: &System<'_>,
        buffers: &lift::Buffers,
        proof: &Proof,
        extra: &[Formula],
    ) -> (Vocabulary, Cubes) {
        let mut vocabulary = match self.method {
            Method::None => Vocabulary::default(),
            Method::Predicates | Method::Cubes => {
                lift::predicates(system, buffers, &proof.predicates, self.mix)
            }
        };
        vocabulary.extend(proof.predicates.iter().chain(extra));
        let cubes = match self.method {
            Method::Cubes => {
                let mut cubes = lift::cubes(system, buffers, &vocabulary, &proof.cubes, self.mix);
                if self.without_buffered {
                    cubes.retain(|c| !buffered(system, &vocabulary, c));
                }
                Cubes::Given(cubes)
            }
            Method::None | Method::Predicates => Cubes::UpTo(self.size),
        };
        (vocabulary, cubes)
    }
}

fn buffered(system: &System<'_>, vocabulary: &Vocabulary, cube: &Cube) -> bool {
    let mut vars = cube.known.iter().flat_map(|p| &vocabulary.all[p].vars);
    vars.any(|v| matches!(system.symbol(*v), Symbol::Entry(..)))
}

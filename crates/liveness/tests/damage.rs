//! Certificates that were damaged where it matters are refused.

mod judge;

use judge::demand;
use wattle_auditor::{AuditError, audit_live};
use wattle_evidence::Certificate;
use wattle_evidence::certificate::components::{Components, Harmless, put, take};
use wattle_evidence::certificate::{ClosedStates, Corrupt};
use wattle_evidence::live::{Fairness, LiveTask};
use wattle_evidence::{Control, LiveAnswer};
use wattle_liveness::run;
use wattle_memory::MemoryModel;
use wattle_random::{Loops, Rng, Shape, program};

/// For every state whose moves are enough (nobody: everybody is needed), and its nodes, each with the automaton's
/// state and its numbers trap by trap.
type Nodes = Vec<(Vec<u32>, Vec<(u32, Vec<Vec<u32>>)>)>;

/// The states and nodes of a certificate, taken apart.
struct Apart {
    rows: Vec<Vec<i64>>,
    nodes: Nodes,
}

fn apart(task: &LiveTask<'_>, c: &Components) -> Apart {
    let mut rows = Vec::new();
    let all: Result<(), Corrupt> = c.states.for_each_row(|r| {
        rows.push(r.to_vec());
        Ok(())
    });
    assert_eq!(all, Ok(()));
    let mut rest = c.nodes.as_slice();
    let traps = task.traps();
    let nodes = rows.iter().map(|row| {
        // The first numbers of a row are the locations.
        let at: Vec<_> = row[..task.instance.threads.len()]
            .iter()
            .map(|l| wattle_model::LocationId::new(*l as usize))
            .collect();
        let held = match task.formula() {
            Some(_) => 1,
            None => traps.iter().filter(|t| t.holds(&at)).count(),
        };
        let mut read = || take(&mut rest).unwrap();
        let enough: Vec<u32> = (0..read()).map(|_| read()).collect();
        let here = (0..read()).map(|_| {
            let q = read();
            let numbers = (0..held).map(|_| (0..read()).map(|_| read()).collect());
            (q, numbers.collect())
        });
        (enough, here.collect())
    });
    let nodes = nodes.collect();
    assert!(rest.is_empty());
    Apart { rows, nodes }
}

fn together(c: &Components, apart: &Apart) -> Components {
    let mut states = ClosedStates::new(c.states.model);
    apart.rows.iter().for_each(|r| states.push(r));
    let mut nodes = Vec::new();
    for (enough, here) in &apart.nodes {
        put(&mut nodes, enough.len() as u64);
        enough.iter().for_each(|p| put(&mut nodes, u64::from(*p)));
        put(&mut nodes, here.len() as u64);
        for (q, numbers) in here {
            put(&mut nodes, u64::from(*q));
            for mine in numbers {
                put(&mut nodes, mine.len() as u64);
                mine.iter().for_each(|n| put(&mut nodes, u64::from(*n)));
            }
        }
    }
    Components {
        states: states.finish(),
        nodes,
        ..c.clone()
    }
}

/// Damages the certificate in one place; nothing if this kind of damage does not apply.
fn damage(
    task: &LiveTask<'_>,
    c: &Components,
    rng: &mut Rng,
) -> Option<(&'static str, Components)> {
    let mut a = apart(task, c);
    let looped: Vec<u32> = c.components.keys().copied().collect();
    Some(match rng.below(14) {
        0 => {
            let i = rng.below(a.rows.len());
            // With fairness the auditor may go on to the next state by itself: then the nodes alone.
            if c.fairness != Fairness::None {
                a.nodes[i].1.clear();
                return Some(("nodes of a state taken out", together(c, &a)));
            }
            a.rows.remove(i);
            a.nodes.remove(i);
            ("a state taken out", together(c, &a))
        }
        1 => {
            let i = rng.below(a.nodes.len());
            let j = rng.below(a.nodes[i].1.len());
            a.nodes[i].1.remove(j);
            ("a node taken out", together(c, &a))
        }
        2 => {
            // A node of a component with edges gets a number below all of its component's.
            let n = *looped.get(rng.below(looped.len().max(1)))?;
            let first = |m: &Vec<u32>| m.first() == Some(&n);
            let members: Vec<(usize, usize, usize)> = (0..a.nodes.len())
                .flat_map(|i| {
                    let here = &a.nodes[i].1;
                    (0..here.len()).flat_map(move |j| (0..here[j].1.len()).map(move |k| (i, j, k)))
                })
                .filter(|(i, j, k)| first(&a.nodes[*i].1[*j].1[*k]))
                .collect();
            if n == 0 || members.len() < 2 {
                return None;
            }
            let (i, j, k) = members[rng.below(members.len())];
            a.nodes[i].1[j].1[k] = vec![0];
            ("a number too small", together(c, &a))
        }
        3 => {
            let n = *looped.get(rng.below(looped.len().max(1)))?;
            let mut damaged = c.clone();
            damaged.components.remove(&n);
            ("a reason taken out", damaged)
        }
        4 => {
            let n = *looped.get(rng.below(looped.len().max(1)))?;
            let mut damaged = c.clone();
            damaged
                .components
                .insert(n, Harmless::Misses(c.automaton.untils.len() as u32));
            ("a set that there is not", damaged)
        }
        5 => {
            if c.automaton.states.iter().all(|s| s.edges.is_empty()) {
                return None;
            }
            let mut damaged = c.clone();
            damaged
                .automaton
                .states
                .iter_mut()
                .for_each(|s| s.edges.clear());
            ("an automaton without edges", damaged)
        }
        6 => {
            let mut damaged = c.clone();
            let state = &mut damaged.automaton.states[c.automaton.initial as usize];
            let i = rng.below(state.edges.len().max(1));
            if state.edges.is_empty() {
                return None;
            }
            state.edges.remove(i);
            ("an edge taken out", damaged)
        }
        12 => {
            let mut damaged = c.clone();
            let states = damaged.automaton.states.iter_mut();
            let edges = states.flat_map(|s| &mut s.edges);
            edges.for_each(|e| e.accepting.clear());
            if damaged == *c {
                return None;
            }
            ("an automaton that accepts no run", damaged)
        }
        7 => {
            let n = a.nodes.len();
            let i = rng.below(n);
            let j = rng.below(a.nodes[i].1.len());
            let k = a.nodes[i].1[j].1.len();
            if k == 0 {
                return None;
            }
            let numbers = &mut a.nodes[i].1[j].1[rng.below(k)];
            // Where nothing goes round, nobody may have to compare them.
            if !numbers.first().is_some_and(|n| looped.contains(n)) {
                return None;
            }
            *numbers = Vec::new();
            ("numbers taken out", together(c, &a))
        }
        8 => {
            let i = rng.below(a.nodes.len());
            a.nodes[i].0 = vec![2 * task.instance.threads.len() as u32];
            ("a process that is none", together(c, &a))
        }
        9 => {
            // Nothing is ever pending there, so nobody moves.
            if c.states.model != MemoryModel::Sc {
                return None;
            }
            let i = rng.below(a.nodes.len());
            a.nodes[i].0 = vec![1];
            ("a buffer that there is not", together(c, &a))
        }
        10 => {
            // Where every thread may stop, all moves are needed.
            if c.fairness != Fairness::None {
                return None;
            }
            let i = rng.below(a.nodes.len());
            a.nodes[i].0 = vec![2 * rng.below(task.instance.threads.len()) as u32];
            ("moves left out without fairness", together(c, &a))
        }
        11 => {
            let i = rng.below(a.rows.len());
            let ended = |t: &usize| {
                let at = wattle_model::LocationId::new(a.rows[i][*t] as usize);
                task.instance.threads[*t].ended(at)
            };
            let t = (0..task.instance.threads.len()).find(ended)?;
            a.nodes[i].0 = vec![2 * t as u32];
            ("a thread that has ended moves alone", together(c, &a))
        }
        _ => {
            let fairness = match c.fairness {
                Fairness::None => Fairness::Weak,
                Fairness::Weak | Fairness::Strong | Fairness::Memory => Fairness::None,
            };
            let mut damaged = c.clone();
            damaged.fairness = fairness;
            ("another fairness", damaged)
        }
    })
}

#[test]
fn damaged_certificates_are_refused() {
    let shape = Shape {
        threads: 2,
        statements: 4,
        regions: 2,
        registers: 2,
        greatest: 1,
        loops: Loops::Fenced,
        properties: false,
        ..Shape::default()
    };
    let wanted = wattle_random::setting("WATTLE_LIVE_DAMAGED", 500);
    let (mut refused, mut seed) = (0, 77_000);
    while refused < wanted {
        seed += 1;
        let mut instance = program(seed, &shape).instance().unwrap();
        let mut rng = Rng::new(seed);
        instance.demands = vec![demand(&mut rng, &instance)];
        let model = *rng.pick(&MemoryModel::ALL);
        let fairness = *rng.pick(&[Fairness::Weak, Fairness::Strong, Fairness::None]);
        let task = LiveTask {
            instance: &instance,
            model,
            demand: 0,
            fairness,
        };
        let (LiveAnswer::Holds(Certificate::Components(c)), _) = run(&task, &Control::unlimited())
        else {
            continue;
        };
        let audit = |c: &Components| {
            let c = Certificate::Components(c.clone());
            audit_live(&task, &c, &Control::unlimited())
        };
        let whole = audit(&c);
        assert!(whole.is_ok(), "seed {seed}, {model}, {fairness}: {whole:?}");
        let whole = apart(&task, &c);
        assert_eq!(together(&c, &whole), c);
        for _ in 0..4 {
            let Some((what, damaged)) = damage(&task, &c, &mut rng) else {
                continue;
            };
            match audit(&damaged) {
                Err(_) => refused += 1,
                Ok(_) => panic!("seed {seed}, {model}, {fairness}: {what} was not noticed"),
            }
        }
    }
}

/// Of threads that go round for ever the others are not forgotten: the moves of those alone are not enough.
#[test]
fn nobody_is_put_off_for_ever() {
    let instance = |waits: i64| {
        let text = format!(
            "shared x: 0..1, y: 0..1;
             thread p {{ loop {{ x = 1; x = 0; }} }} thread r {{ local a: 0..1; loop {{ a = x; }} }}
             thread q {{ assume y == {waits}; y = 1; }} thread s {{ local b: 0..1; b = y; }}
             ltl G(y == 0);"
        );
        let program = wattle_syntax::wtl::parse(&text).program.unwrap();
        program.instance().unwrap()
    };
    let (waits, goes) = (instance(1), instance(0));
    let task = |instance| LiveTask {
        instance,
        model: MemoryModel::Sc,
        demand: 0,
        fairness: Fairness::Weak,
    };
    let (answer, _) = run(&task(&waits), &Control::unlimited());
    let LiveAnswer::Holds(Certificate::Components(c)) = answer else {
        panic!("nobody stores to y");
    };
    let mut alone = apart(&task(&waits), &c);
    for (enough, _) in &mut alone.nodes {
        *enough = vec![0, 2];
    }
    let audit = |c| {
        let forged = Certificate::Components(c);
        audit_live(&task(&goes), &forged, &Control::unlimited())
    };
    let said = audit(together(&c, &alone));
    assert!(audit(c).is_err());
    assert!(
        matches!(&said, Err(AuditError::Other(why)) if why.contains("put off for ever")),
        "{said:?}"
    );
}

//! Rounds of messages among owners, on timely dataflow: an owner is a worker of one of the processes.
//!
//! A round is a timestamp. Whoever has sent all it has to send in a round moves on to the next one, and timely's
//! progress tracking says when all have and everything has arrived.

use super::mesh::{Link, Lost, Mesh};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use timely::WorkerConfig;
use timely::communication::allocator::ProcessBuilder;
use timely::communication::allocator::zero_copy::allocator::TcpBuilder;
use timely::communication::allocator::zero_copy::initialize::{
    CommsGuard, initialize_networking_from_sockets,
};
use timely::communication::{Allocator, Hooks};
use timely::container::CapacityContainerBuilder;
use timely::dataflow::channels::pact;
use timely::dataflow::operators::{Input, Operator, Probe};
use timely::dataflow::{InputHandleVec, ProbeHandle};
use timely::worker::Worker;

/// Words for an owner.
type Block = (u64, Vec<u64>);

/// What has arrived, by rounds.
type Arrived = Rc<RefCell<BTreeMap<u64, Vec<Vec<u64>>>>>;

/// How long one waits at most before one looks around.
const NAP: Duration = Duration::from_millis(20);

/// What the owners of this process are made of; to be built in their threads.
pub struct Builders {
    pub builders: Vec<TcpBuilder>,
    guard: CommsGuard,
    ending: Option<Arc<AtomicBool>>,
}

impl Builders {
    pub fn new(mesh: &Mesh, links: Vec<Option<Link>>, workers: usize) -> Result<Self, Lost> {
        let hooks = Hooks::default();
        let inside =
            ProcessBuilder::new_typed_vector(workers, hooks.refill.clone(), hooks.spill.clone());
        let ending = links.iter().flatten().next().map(Link::ending);
        let me = mesh.hosts().process();
        let (builders, guard) =
            initialize_networking_from_sockets(inside, links, me, workers, hooks)
                .map_err(|e| Lost(e.to_string()))?;
        Ok(Builders {
            builders,
            guard,
            ending,
        })
    }

    /// Who may say that the search is at its end.
    pub fn ending(&self) -> Option<Arc<AtomicBool>> {
        self.ending.clone()
    }

    /// Waits until all is sent and received; if somebody is lost that never comes.
    pub fn close(self, all_well: bool) {
        match all_well {
            true => drop(self.guard),
            false => std::mem::forget(self.guard),
        }
    }
}

/// What an owner sends and receives.
pub struct Exchange<'m> {
    mesh: &'m Mesh,
    worker: Worker,
    input: InputHandleVec<u64, Block>,
    probe: ProbeHandle<u64>,
    arrived: Arrived,
    round: u64,
    ending: Option<Arc<AtomicBool>>,
}

impl<'m> Exchange<'m> {
    pub fn new(mesh: &'m Mesh, builder: TcpBuilder, ending: Option<Arc<AtomicBool>>) -> Self {
        let allocator = Allocator::Tcp(builder.build());
        // Without a clock timely never sleeps: whoever waits would take the processor from those who are waited for.
        let clock = Some(Instant::now());
        let mut worker = Worker::new(WorkerConfig::default(), allocator, clock);
        let arrived: Arrived = Rc::default();
        let kept = arrived.clone();
        let (input, probe) = worker.dataflow::<u64, _, _>(|scope| {
            let (input, stream) = scope.new_input::<Vec<Block>>();
            let to_owner = pact::Exchange::new(|block: &Block| block.0);
            let (probe, _) = stream
                .unary::<CapacityContainerBuilder<Vec<()>>, _, _, _>(to_owner, "owner", |_, _| {
                    move |input, _| {
                        input.for_each(|time, blocks| {
                            let mut kept = kept.borrow_mut();
                            let kept = kept.entry(*time.time()).or_default();
                            kept.extend(blocks.drain(..).map(|(_, words)| words));
                        });
                    }
                })
                .probe();
            (input, probe)
        });
        Exchange {
            mesh,
            worker,
            input,
            probe,
            arrived,
            round: 0,
            ending,
        }
    }

    /// Which owner this is.
    pub fn me(&self) -> usize {
        self.worker.index()
    }

    /// How many owners there are.
    pub fn owners(&self) -> usize {
        self.worker.peers()
    }

    /// Sends words to an owner.
    pub fn send(&mut self, owner: usize, words: Vec<u64>) {
        self.input.send((owner as u64, words));
    }

    /// Lets messages travel, and gives what has arrived of this round.
    pub fn step(&mut self) -> Result<Vec<Vec<u64>>, Lost> {
        self.mesh.go_on()?;
        self.worker.step();
        Ok(self.take())
    }

    fn take(&mut self) -> Vec<Vec<u64>> {
        self.arrived
            .borrow_mut()
            .remove(&self.round)
            .unwrap_or_default()
    }

    /// This owner has sent all it has to; ends when all owners have and everything is there.
    pub fn end_round(
        &mut self,
        mut look_around: impl FnMut(),
        mut receive: impl FnMut(Vec<u64>),
    ) -> Result<(), Lost> {
        let next = self.round + 1;
        self.input.advance_to(next);
        self.input.flush();
        while self.probe.less_than(&next) {
            self.mesh.go_on()?;
            self.worker.step_or_park(Some(NAP));
            look_around();
            self.take().into_iter().for_each(&mut receive);
        }
        self.take().into_iter().for_each(&mut receive);
        self.round = next;
        Ok(())
    }

    /// What each of the owners says, in their order.
    pub fn gather(&mut self, mine: &[u64]) -> Result<Vec<Vec<u64>>, Lost> {
        let me = self.me() as u64;
        for owner in 0..self.owners() {
            let mut words = vec![me];
            words.extend(mine);
            self.send(owner, words);
        }
        let mut all = vec![Vec::new(); self.owners()];
        self.end_round(
            || (),
            |mut words| {
                let rest = words.split_off(1);
                if let Some(said) = words.first().and_then(|from| all.get_mut(*from as usize)) {
                    *said = rest;
                }
            },
        )?;
        Ok(all)
    }

    /// Ends with all the others; whether that could be. All is known by now, so it does not matter if it could not.
    pub fn close(mut self) -> bool {
        if let Some(ending) = &self.ending {
            ending.store(true, Ordering::SeqCst);
        }
        self.input.close();
        while self.worker.has_dataflows() {
            if self.mesh.go_on().is_err() {
                // What timely still holds is never sent.
                std::mem::forget(self.worker);
                return false;
            }
            self.worker.step_or_park(Some(NAP));
        }
        true
    }

    /// Ends without the others.
    pub fn abandon(self) {
        std::mem::forget(self);
    }
}

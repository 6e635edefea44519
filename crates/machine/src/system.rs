//! What the system does for a thread that calls it: nothing that another thread could see.
//!
//! A futex may come back at any time, woken or not: who is right then, is right with the kernel's.

use crate::bits::{Base, Bin, E};
use crate::build::Builder;
use crate::graph::{ARGUMENTS, Access, Op, Origin, Vars};
use crate::markers::{Back, Marker};
use crate::thread;

/// Why another call of the kernel is refused.
pub const WHY: &str = "only calls of the kernel that do nothing to memory are supported (`futex` with wait and wake, \
                       `sched_yield`), and their numbers must be known";

const EINTR: u64 = 4;
const EAGAIN: u64 = 11;
const ETIMEDOUT: u64 = 110;

/// A call of the kernel.
pub struct Call {
    pub number: E,
    /// The second argument.
    pub operation: E,
    /// The fourth.
    pub timeout: E,
}

fn is(e: &E, n: u64) -> E {
    E::same(e.clone(), E::constant(n, e.width()))
}

impl Call {
    /// Which operation of a futex it is, without the bits for private ones and for the clock.
    fn plain(&self) -> E {
        let kept = E::constant(0xffff_ffff & !(128 | 256), 32);
        E::bin(Bin::And, self.operation.clone().extract(0, 32), kept)
    }

    /// Whether it is to wait: `FUTEX_WAIT`, `FUTEX_WAIT_BITSET`.
    fn waits(&self) -> E {
        let operation = self.plain();
        E::or(is(&operation, 0), is(&operation, 9))
    }

    /// Whether it only waits, wakes, or gives the processor away.
    pub fn harmless(&self) -> E {
        let number = self.number.clone().extract(0, 32);
        let operation = self.plain();
        let wakes = E::or(is(&operation, 1), is(&operation, 10));
        let futex = E::and(is(&number, 202), E::or(self.waits(), wakes));
        E::or(futex, is(&number, 24))
    }

    /// Whether it fails, what it gives back if not, and the error if it does.
    pub fn answer(&self, vars: &mut Vars, ops: &mut Vec<Op>) -> (E, E, E) {
        let mut any = |width: u32, name: &str| {
            let v = vars.fresh(width, name);
            ops.push(Op::Havoc(v));
            E::Var(v, width)
        };
        let (fails, woken) = (any(1, "fails"), any(31, "woken"));
        let (signal, late) = (any(1, "signal"), any(1, "late"));
        let error = |n: u64| E::constant(n, 32);
        let may_be_late = E::and(late, is(&self.timeout, 0).inverted());
        let other = E::ite(may_be_late, error(ETIMEDOUT), error(EAGAIN));
        let error = E::ite(signal, error(EINTR), other);
        let waits = self.waits();
        let back = E::ite(waits.clone(), E::constant(0, 64), woken.zext(64));
        (E::and(fails, waits), back, error)
    }
}

impl Builder<'_> {
    /// Calls the system; what comes back.
    pub(crate) fn system(&mut self, at: usize, marker: &Marker, origin: Origin) -> (usize, E) {
        let [first, second, third, .., fifth, _] = ARGUMENTS.map(|v| E::Var(v, 64));
        let mut ops = Vec::new();
        let minus = E::constant(u64::MAX, 64);
        let result = match marker {
            Marker::Errno => E::Address(Base::Stack, thread::ERRNO),
            Marker::Itself => {
                let itself = self.world.itself(self.family);
                E::Address(Base::Own(itself), 0)
            }
            Marker::Argument => first,
            Marker::Syscall => {
                let call = Call {
                    number: first,
                    operation: third,
                    timeout: fifth,
                };
                ops.push(Op::Require(call.harmless(), WHY.to_string()));
                let (failed, back, error) = call.answer(&mut self.graph.vars, &mut ops);
                self.fails(&failed, error, &mut ops);
                E::ite(failed, minus, back)
            }
            Marker::Nanosleep | Marker::Library(Back::Slept) => {
                if *marker == Marker::Nanosleep {
                    let why = "`nanosleep` that says how long it did not sleep is not supported";
                    ops.push(Op::Require(is(&second, 0), why.to_string()));
                }
                let woken = self.any(1, &mut ops);
                self.fails(&woken, E::constant(EINTR, 32), &mut ops);
                E::ite(woken, minus, E::constant(0, 64))
            }
            Marker::Library(Back::Random) => self.any(31, &mut ops).zext(64),
            _ => {
                let (any, error) = (self.any(64, &mut ops), self.any(32, &mut ops));
                self.fails(&E::bool(true), error, &mut ops);
                any
            }
        };
        let at = ops
            .into_iter()
            .fold(at, |at, op| self.graph.then(at, op, origin));
        (at, result)
    }

    fn any(&mut self, width: u32, ops: &mut Vec<Op>) -> E {
        let v = self.graph.vars.fresh(width, "any");
        ops.push(Op::Havoc(v));
        E::Var(v, width)
    }

    /// Leaves an error behind, if it failed.
    fn fails(&mut self, failed: &E, error: E, ops: &mut Vec<Op>) {
        let at = Access {
            address: E::Address(Base::Stack, thread::ERRNO),
            bytes: 4,
            locked: false,
        };
        let before = self.graph.vars.fresh(32, "error");
        ops.push(Op::Load {
            to: before,
            at: at.clone(),
        });
        let value = E::ite(failed.clone(), error, E::Var(before, 32));
        ops.push(Op::Store { at, value });
    }
}

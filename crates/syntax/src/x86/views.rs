//! `$t:x` of a variable that the thread stores to only with `lock`, or not at all, is `x`.
//!
//! Such a store writes memory at once and begins with an empty buffer, so there is never a pending store that the
//! thread could see instead.

use std::convert::Infallible;
use wattle_model::{Expr, Observation, Place, Program};

pub fn settle(program: &mut Program) {
    let families = &program.families;
    for p in &mut program.properties {
        let settled = p.condition.expr.substitute(&mut |o| {
            let Observation::Seen(t, region, index) = o else {
                return Ok::<_, Infallible>(Expr::Atom(o.clone()));
            };
            let mut stores = families[t.family.index()].buffered_stores().into_iter();
            let may_wait = stores.any(|(place, _)| match place {
                Place::Region(r, _) => r == region,
                Place::Memory(_) => true,
            });
            Ok(Expr::Atom(match may_wait {
                true => o.clone(),
                false => Observation::Cell(*region, index.clone()),
            }))
        });
        let Ok(settled) = settled;
        p.condition.expr = settled;
    }
}

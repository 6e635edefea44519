//! Memory operands: a variable, or an address computed from registers.

use super::super::ast::{Domain, Leaf, Location};
use super::super::scope::{hull, membership, unknown};
use super::Lower;
use crate::diagnostics::Diagnostic;
use crate::flow::junction;
use wattle_model::program::Local;
use wattle_model::{Expr, Op2, Place, RegionId, Span};

/// A memory operand that has been found.
pub(super) struct Target {
    pub place: Place,
    /// When there is such a cell.
    pub exists: Option<Expr<Local>>,
    /// The cells it can be: its address if computed, and each cell's domain.
    address: Option<Expr<Local>>,
    cells: Vec<(i64, Domain)>,
}

impl Lower<'_> {
    pub(super) fn target(&mut self, location: &Location) -> Option<Target> {
        let memory = self.memory;
        let ((name, span), owner) = match location {
            Location::At(e, span) => return self.computed(e, *span),
            Location::Global((name, span)) => {
                let Some(r) = memory.globals.get(name) else {
                    let known = memory.globals.keys().map(String::as_str);
                    let mut d = unknown("variable", name, *span, known);
                    if memory.data_names().any(|n| n == name) {
                        d.hint = Some(format!(
                            "each process has its own: `{name}[my]` or `{name}[0]`"
                        ));
                    }
                    self.report(d.expected("a variable declared under `data`"));
                    return None;
                };
                let domain = memory.domains[r.index()];
                let place = Place::Region(*r, Expr::Const(0));
                return Some(Target::one(place, domain));
            }
            Location::Mine(name) => (name, self.block.me()),
            Location::Other(name, k) => (name, self.block.other(*k)),
        };
        let Some((region, index)) = memory.data(name, &owner, self.block) else {
            let total: i64 = memory.blocks.iter().map(|b| i64::from(b.count)).sum();
            if owner.as_const().is_some_and(|p| p >= total) {
                let message = match total - 1 {
                    0 => "there is no other process".to_string(),
                    1 => "there is only one other process".to_string(),
                    n => format!("there are only {n} other processes"),
                };
                let d = Diagnostic::error(*span, message);
                self.report(d.expected("`[my]`, or `[k]` with k counting the others from 0"));
            } else {
                let d = unknown(
                    "variable of that process:",
                    name,
                    *span,
                    memory.data_names(),
                );
                self.report(
                    d.expected("a variable declared under `data` of the process it belongs to"),
                );
            }
            return None;
        };
        let domain = memory.domains[region.index()];
        Some(Target::one(Place::Region(region, index), domain))
    }

    /// A flat address: the global data, in order.
    fn computed(&mut self, e: &Expr<Leaf>, span: Span) -> Option<Target> {
        let address = self.expr(e)?;
        let length = self.memory.globals.len() as i64;
        let all = Some((0, length - 1));
        let of = self.range(&address);
        let (lo, hi) = of.map_or((0, length - 1), |(lo, hi)| (lo.max(0), hi.min(length - 1)));
        if lo > hi {
            let message = "this address is not that of any variable";
            let hint = format!("`[e]` counts the {length} variables of the global `data` from 0");
            self.report(Diagnostic::error(span, message).hint(hint));
            return None;
        }
        let cells = (lo..=hi).map(|a| (a, self.memory.domains[a as usize]));
        let mut target = Target {
            place: Place::Memory(address.clone()),
            exists: membership(&address, of, all),
            cells: cells.collect(),
            address: Some(address),
        };
        if let [(only, _)] = target.cells[..]
            && target.exists.is_none()
        {
            target.place = Place::Region(RegionId::new(only as usize), Expr::Const(0));
        }
        Some(target)
    }
}

impl Target {
    fn one(place: Place, domain: Domain) -> Self {
        Target {
            place,
            exists: None,
            address: None,
            cells: vec![(0, domain)],
        }
    }

    /// Everything a load can find there.
    pub fn domain(&self) -> Domain {
        hull(self.cells.iter().map(|(_, d)| *d))
    }

    /// The condition that the cell may hold the value; `None` if it always may.
    pub fn admits(&self, value: &Expr<Local>, of: Domain) -> Option<Expr<Local>> {
        let mut kinds: Vec<Domain> = self.cells.iter().map(|(_, d)| *d).collect();
        kinds.sort_unstable();
        kinds.dedup();
        let (Some(address), true) = (&self.address, kinds.len() > 1) else {
            return membership(value, of, kinds.pop()?);
        };
        let mut parts = Vec::new();
        for kind in kinds {
            let Some(fits) = membership(value, of, kind) else {
                continue;
            };
            let here = self.cells.iter().filter(|(_, d)| *d == kind);
            let here = here.map(|(a, _)| Expr::binary(Op2::Eq, address.clone(), Expr::Const(*a)));
            let elsewhere = junction(Op2::Or, here.collect())?.negate();
            parts.push(Expr::binary(Op2::Or, elsewhere, fits));
        }
        junction(Op2::And, parts)
    }
}

//! Linear integer terms, a proof-producing solver, interpolants.
//!
//! # Terms and formulas
//!
//! Variables are opaque numbers with names kept aside; terms are built with
//! operators, formulas with [`le`], [`lt`], [`ge`], [`gt`], [`eq`], [`ne`],
//! [`divides`], [`and`], [`or`], [`not`], [`implies`], [`iff`] and [`ite`].
//! Everything is normalised as it is built, so equal constraints are equal
//! values, and negation normal form is the only form there is.
//!
//! ```
//! use wattle_logic::*;
//! let mut names = Symbols::new();
//! let (x, y) = (names.var("x"), names.var("y"));
//! let f = and([lt(x, y), ne(x * 2 + y, 3)]);
//! assert_eq!(f.display(&names).to_string(), "x < y && 2*x + y != 3");
//! assert_eq!(le(x * 2, 3), le(x, 1));                    // over the integers
//! assert_eq!(not(&lt(x, y)), le(y, x));
//! // the weakest precondition of x := x + 1
//! assert_eq!(lt(x, y).assign(x, &(x + 1)), lt(x + 1, y));
//! ```
//!
//! Booleans and enumerations are bounded integers: `and([ge(b, 0), le(b, 1)])`,
//! with `eq(b, 1)` for "b". All arithmetic is exact ([`Int`]).
//!
//! # Asking
//!
//! [`Native`] is our own solver behind the [`Solver`] trait. A `Sat` carries a
//! model, an `Unsat` a core and a proof that [`proof::check`] re-checks, and
//! `Unknown` means neither.
//!
//! ```
//! use wattle_logic::*;
//! let mut names = Symbols::new();
//! let (x, y, z) = (names.var("x"), names.var("y"), names.var("z"));
//! let query = [le(x, y), lt(y, z), ge(x, 0), eq(z, x)];
//! let Answer::Unsat(refutation) = Native::new().check(&query) else { panic!() };
//! assert_eq!(refutation.core, [0, 1, 3]);
//! proof::check(&query, refutation.proof.as_ref().unwrap()).unwrap();
//!
//! let Answer::Sat(model) = Native::new().check(&query[..3]) else { panic!() };
//! assert!(model.value(x) <= model.value(y));
//! ```
//!
//! [`Session`] adds counters, a query cache and model pools; engines hold one.
//!
//! ```
//! use wattle_logic::*;
//! let mut names = Symbols::new();
//! let (x, y) = (names.var("x"), names.var("y"));
//! let mut session = Session::new();
//! let mut pool = Pool::new();
//! let premises = [lt(x, y), ge(x, 0), le(y, 7)];
//! let Implication::Valid(core) = session.implies_with(&mut pool, &premises, &gt(y, 0)) else { panic!() };
//! assert_eq!(core, [0, 1]);
//! assert!(!session.implies_with(&mut pool, &premises, &gt(x, 3)).is_valid());
//! assert!(!session.implies_with(&mut pool, &premises, &gt(x, 5)).is_valid());
//! assert_eq!((session.counters.solver_calls, session.counters.pool_hits), (2, 1));
//! ```
//!
//! For cube search over a fixed list of predicates, [`TruthTable`] keeps the
//! models' truth values as bits. [`minimal_core`] shrinks a core by deletion.
//!
//! # Interpolants and projection
//!
//! ```
//! use wattle_logic::*;
//! let mut names = Symbols::new();
//! let (x, y, z) = (names.var("x"), names.var("y"), names.var("z"));
//! // x = 0; y = x + 1; z = y + 1; assume z < 2 — what is known after each step
//! let trace = [eq(x, 0), eq(y, x + 1), eq(z, y + 1), lt(z, 2)];
//! let Interpolation::Sequence(known) = interpolants(&mut Native::new(), &trace) else { panic!() };
//! let shown: Vec<String> = known.iter().map(|f| f.display(&names).to_string()).collect();
//! assert_eq!(shown, ["x >= 0", "y >= 1", "z >= 2"]);
//!
//! // ∃x. y < x < z
//! let between = and([lt(y, x), lt(x, z)]);
//! assert_eq!(project(&between, &[x].into()), Some(le(y + 2, z)));
//! ```
//!
//! # Second opinions
//!
//! [`to_smt2`] prints a query for any other solver. [`Z3`] is a [`Solver`] that
//! talks to an installed `z3`; the example `second_opinion` compares verdicts on
//! many random queries.

#![cfg_attr(not(test), deny(clippy::wildcard_enum_match_arm))]
#![cfg_attr(not(test), deny(clippy::match_wildcard_for_single_variants))]

mod atom;
mod cache;
mod canon;
mod core;
mod display;
pub mod formula;
mod int;
mod interpolate;
mod model;
mod names;
pub mod native;
mod pool;
mod project;
pub mod proof;
mod rat;
mod session;
mod simplify;
mod smt2;
mod solver;
mod term;
mod z3;

pub use self::core::minimal_core;
pub use atom::{Atom, Rel};
pub use formula::{Formula, and, divides, eq, ge, gt, iff, implies, ite, le, lt, ne, not, or};
pub use int::Int;
pub use interpolate::{
    Interpolation, interpolants, verify as verify_interpolants, weak_interpolants,
};
pub use model::Model;
pub use names::Symbols;
pub use native::{Limits, Native, Strategy};
pub use pool::{CubeLiteral, Pool, TruthTable};
pub use project::project;
pub use session::{Counters, Implication, Session};
pub use smt2::{query_smt2, to_smt2};
pub use solver::{Answer, Reason, Refutation, Solver};
pub use term::{Term, Var};
pub use z3::Z3;

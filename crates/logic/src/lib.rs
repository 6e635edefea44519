//! Linear integer terms, a proof-producing solver, interpolants.

//! Which fences: implicit hitting sets over any engine.

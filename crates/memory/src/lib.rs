//! What a step is: the reference machine and the compiled machine.

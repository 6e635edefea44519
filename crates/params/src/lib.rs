//! Any number of threads: backward reachability over cubes with weak memory.

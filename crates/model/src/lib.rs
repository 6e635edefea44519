//! What a program is: cells, threads as graphs, properties.

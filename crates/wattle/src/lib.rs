//! The library façade.

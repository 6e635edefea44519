//! Text to model, one folder per language.

//! Text, JSON and pictures of evidence.

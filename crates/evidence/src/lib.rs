//! Verdicts, traces, certificates, and the auditor that re-checks them.

//! Broken rules of views.

//! Which variable a name means: a field of the machine, or a local of the code between two labels.

use std::collections::BTreeSet;

use proc_macro2::Ident;
use syn::visit::Visit;
use syn::{Expr, Pat};

use crate::machine::{BlockId, LocalId, LocalUse, VarId};

#[derive(Clone)]
pub(crate) enum Binding {
    State(VarId),
    Local {
        block: BlockId,
        /// Of a value that is checked if a label is in its scope.
        holds: Option<LocalId>,
    },
}

/// The names in scope, and what was found out about their uses.
#[derive(Default)]
pub(crate) struct Names {
    scopes: Vec<Vec<(String, Binding)>>,
    locals: LocalId,
    /// Given to `drop` on every way to here.
    pub(crate) dropped: BTreeSet<LocalId>,
    pub(crate) uses: Vec<LocalUse>,
}

impl Names {
    pub(crate) fn open(&mut self) {
        self.scopes.push(Vec::new());
    }

    pub(crate) fn close(&mut self) {
        self.scopes.pop();
    }

    pub(crate) fn bind(&mut self, name: &Ident, binding: Binding) {
        let scope = self.scopes.last_mut().expect("a scope is open");
        scope.push((name.to_string(), binding));
    }

    /// Every name of a pattern is a local from here on.
    pub(crate) fn bind_locals(&mut self, pat: &Pat, block: BlockId) {
        for name in names_of(pat) {
            self.bind(&name, Binding::Local { block, holds: None });
        }
    }

    /// The same, of values that may be guards.
    pub(crate) fn bind_held(&mut self, pat: &Pat, block: BlockId) -> Vec<(Ident, LocalId)> {
        let mut binds = Vec::new();
        for name in names_of(pat) {
            let holds = Some(self.locals);
            self.bind(&name, Binding::Local { block, holds });
            binds.push((name, self.locals));
            self.locals += 1;
        }
        binds
    }

    pub(crate) fn find(&self, name: &str) -> Option<&Binding> {
        let mut all = self
            .scopes
            .iter()
            .rev()
            .flat_map(|scope| scope.iter().rev());
        all.find(|(known, _)| known == name)
            .map(|(_, binding)| binding)
    }

    pub(crate) fn state(&self, name: &Ident) -> Option<VarId> {
        match self.find(&name.to_string()) {
            Some(Binding::State(var)) => Some(*var),
            _ => None,
        }
    }

    /// `drop(name)`: what it held is gone.
    pub(crate) fn forget(&mut self, name: &Ident) {
        if let Some(Binding::Local {
            holds: Some(local), ..
        }) = self.find(&name.to_string())
        {
            self.dropped.insert(*local);
        }
    }

    /// Locals that still hold a value where a path stops.
    pub(crate) fn held(&self) -> Vec<LocalId> {
        let locals = self
            .scopes
            .iter()
            .flatten()
            .filter_map(|(_, binding)| match binding {
                Binding::Local { holds, .. } => *holds,
                Binding::State(_) => None,
            });
        locals
            .filter(|local| !self.dropped.contains(local))
            .collect()
    }
}

/// The names that a pattern binds.
pub(crate) fn names_of(pat: &Pat) -> Vec<Ident> {
    struct Bound(Vec<Ident>);
    impl<'ast> Visit<'ast> for Bound {
        fn visit_pat_ident(&mut self, pat: &'ast syn::PatIdent) {
            // `None` and the like are constants, by how they are written.
            let plain = pat.by_ref.is_none() && pat.mutability.is_none() && pat.subpat.is_none();
            let first = pat.ident.to_string().chars().next();
            if !(plain && first.is_some_and(char::is_uppercase)) {
                self.0.push(pat.ident.clone());
            }
            syn::visit::visit_pat_ident(self, pat);
        }
        fn visit_expr(&mut self, _: &'ast Expr) {}
    }
    let mut bound = Bound(Vec::new());
    bound.visit_pat(pat);
    bound.0
}

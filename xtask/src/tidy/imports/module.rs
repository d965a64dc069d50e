//! The modules of a crate, read from its sources: what each declares, imports and names.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use proc_macro2::{Ident, TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Attribute, ImplItemFn, Item, ItemMod, ItemUse, Macro, UseTree, Visibility};

use crate::tidy::Violation;
use crate::tidy::files::Files;

/// A path as it stands in the source: `super::op::TunnelOp` in segments.
#[derive(Debug)]
pub(super) struct Named {
    pub(super) path: Vec<String>,
    pub(super) line: usize,
}

/// One name of a `use` item.
#[derive(Debug)]
pub(super) struct Import {
    /// What it is called here; `None` for everything (`*`).
    pub(super) name: Option<String>,
    pub(super) named: Named,
    /// Whether it is `pub` in any degree, and so only passed on.
    pub(super) exported: bool,
}

/// One module, tests aside.
#[derive(Debug, Default)]
pub(super) struct Module {
    /// Its path below the crate's root, `tunnel::op`; empty for the root.
    pub(super) name: String,
    /// Where its text is. A module in braces shares it with its parent.
    pub(super) file: PathBuf,
    pub(super) parent: Option<usize>,
    /// The modules declared in it.
    pub(super) children: BTreeMap<String, usize>,
    /// The items defined in it.
    pub(super) items: BTreeSet<String>,
    pub(super) imports: Vec<Import>,
    /// The paths in its code, `use` aside.
    pub(super) paths: Vec<Named>,
}

/// Reads the modules of the library in `crate_folder`; the first is the root. What cannot be read is
/// a violation.
pub(super) fn read(files: &Files, crate_folder: &Path) -> Result<Vec<Module>, Violation> {
    let folder = crate_folder.join("src");
    let mut reader = Reader { files, modules: Vec::new() };
    reader.read_file(Module { file: folder.join("lib.rs"), ..Module::default() }, &folder)?;
    Ok(reader.modules)
}

struct Reader<'a> {
    files: &'a Files,
    modules: Vec<Module>,
}

impl Reader<'_> {
    /// Reads a module that is a file, whose children are in `folder`. Returns its number.
    fn read_file(&mut self, module: Module, folder: &Path) -> Result<usize, Violation> {
        let place = module.file.display().to_string();
        let broken = |what: String| {
            Violation::new(&*place, what, "correct it, or what reads it in xtask/src/tidy/imports")
        };
        let text = self.files.text(&module.file).ok_or_else(|| broken("no such file".into()))?;
        let syntax = syn::parse_file(text).map_err(|error| broken(error.to_string()))?;
        self.read_items(module, &syntax.items, folder)
    }

    fn read_items(
        &mut self,
        module: Module,
        items: &[Item],
        folder: &Path,
    ) -> Result<usize, Violation> {
        let mut content = Content { module, declared: Vec::new() };
        for item in items {
            content.visit_item(item);
        }
        let (Content { module, declared }, number) = (content, self.modules.len());
        let (parent, file) = (module.name.clone(), module.file.clone());
        self.modules.push(module);
        for declaration in declared {
            let name = declaration.ident.to_string();
            let separator = if parent.is_empty() { "" } else { "::" };
            let mut child = Module {
                name: format!("{parent}{separator}{name}"),
                file: file.clone(),
                parent: Some(number),
                ..Module::default()
            };
            let inner = folder.join(&name);
            let child = if let Some((_, items)) = &declaration.content {
                self.read_items(child, items, &inner)?
            } else {
                let beside = folder.join(format!("{name}.rs"));
                let within = inner.join("mod.rs");
                child.file = if self.files.text(&beside).is_some() { beside } else { within };
                self.read_file(child, &inner)?
            };
            self.modules[number].children.insert(name, child);
        }
        Ok(number)
    }
}

/// What stands in one module.
struct Content<'a> {
    module: Module,
    declared: Vec<&'a ItemMod>,
}

impl Content<'_> {
    fn name(&mut self, path: Vec<String>, line: usize) {
        if !path.is_empty() {
            self.module.paths.push(Named { path, line });
        }
    }

    /// Takes a `use` item apart into its names.
    fn import(&mut self, tree: &UseTree, mut path: Vec<String>, exported: bool) {
        let (name, ident) = match tree {
            UseTree::Path(step) => {
                path.push(step.ident.to_string());
                return self.import(&step.tree, path, exported);
            }
            UseTree::Group(group) => {
                for tree in &group.items {
                    self.import(tree, path.clone(), exported);
                }
                return;
            }
            UseTree::Glob(glob) => (None, glob.star_token.spans[0]),
            UseTree::Name(name) if name.ident == "self" => {
                (path.last().cloned(), name.ident.span())
            }
            UseTree::Name(name) => {
                path.push(name.ident.to_string());
                (Some(name.ident.to_string()), name.ident.span())
            }
            UseTree::Rename(rename) => {
                if rename.ident != "self" {
                    path.push(rename.ident.to_string());
                }
                (Some(rename.rename.to_string()), rename.ident.span())
            }
        };
        let named = Named { path, line: ident.start().line };
        self.module.imports.push(Import { name, named, exported });
    }

    /// The paths among the tokens of a macro, which are not syntax until it is expanded.
    fn tokens(&mut self, tokens: TokenStream) {
        let mut path: Vec<String> = Vec::new();
        let (mut line, mut colons, mut after_dot) = (0, 0, false);
        for token in tokens {
            match &token {
                TokenTree::Ident(ident) if colons == 2 && !path.is_empty() => {
                    path.push(ident.to_string());
                }
                TokenTree::Punct(punct) if punct.as_char() == ':' => {
                    colons += 1;
                    continue;
                }
                TokenTree::Ident(ident) if !after_dot => {
                    self.name(std::mem::take(&mut path), line);
                    path.push(ident.to_string());
                    line = ident.span().start().line;
                }
                TokenTree::Ident(_) | TokenTree::Punct(_) | TokenTree::Literal(_) => {
                    self.name(std::mem::take(&mut path), line);
                }
                TokenTree::Group(group) => {
                    self.name(std::mem::take(&mut path), line);
                    self.tokens(group.stream());
                }
            }
            colons = 0;
            after_dot = matches!(&token, TokenTree::Punct(punct) if punct.as_char() == '.');
        }
        self.name(path, line);
    }
}

impl<'a> Visit<'a> for Content<'a> {
    fn visit_item(&mut self, item: &'a Item) {
        let (attributes, ident) = parts(item);
        if attributes.iter().any(is_test) {
            return;
        }
        if let Some(ident) = ident {
            self.module.items.insert(ident.to_string());
        }
        visit::visit_item(self, item);
    }

    fn visit_impl_item_fn(&mut self, function: &'a ImplItemFn) {
        if !function.attrs.iter().any(is_test) {
            visit::visit_impl_item_fn(self, function);
        }
    }

    fn visit_item_mod(&mut self, module: &'a ItemMod) {
        self.declared.push(module);
    }

    fn visit_item_use(&mut self, item: &'a ItemUse) {
        if item.leading_colon.is_none() {
            let exported = !matches!(item.vis, Visibility::Inherited);
            self.import(&item.tree, Vec::new(), exported);
        }
    }

    fn visit_path(&mut self, path: &'a syn::Path) {
        if let (None, Some(first)) = (&path.leading_colon, path.segments.first()) {
            let segments = path.segments.iter().map(|segment| segment.ident.to_string());
            self.name(segments.collect(), first.ident.span().start().line);
        }
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, called: &'a Macro) {
        visit::visit_macro(self, called);
        self.tokens(called.tokens.clone());
    }
}

/// The attributes of an item, and the name under which others can reach it unless it is a module.
fn parts(item: &Item) -> (&[Attribute], Option<&Ident>) {
    match item {
        Item::Const(item) => (&item.attrs, Some(&item.ident)),
        Item::Enum(item) => (&item.attrs, Some(&item.ident)),
        Item::Fn(item) => (&item.attrs, Some(&item.sig.ident)),
        Item::Impl(item) => (&item.attrs, None),
        Item::Macro(item) => (&item.attrs, item.ident.as_ref()),
        Item::Mod(item) => (&item.attrs, None),
        Item::Static(item) => (&item.attrs, Some(&item.ident)),
        Item::Struct(item) => (&item.attrs, Some(&item.ident)),
        Item::Trait(item) => (&item.attrs, Some(&item.ident)),
        Item::Type(item) => (&item.attrs, Some(&item.ident)),
        Item::Union(item) => (&item.attrs, Some(&item.ident)),
        Item::Use(item) => (&item.attrs, None),
        Item::ExternCrate(_)
        | Item::ForeignMod(_)
        | Item::TraitAlias(_)
        | Item::Verbatim(_)
        | _ => (&[], None),
    }
}

/// Whether this attribute is `#[cfg(test)]`.
fn is_test(attribute: &Attribute) -> bool {
    attribute.path().is_ident("cfg")
        && attribute.parse_args::<Ident>().is_ok_and(|condition| condition == "test")
}

//! A Debian kernel for the machine: its image, and the modules that GRE over FOU takes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};

/// What the kernel must have beside what Debian builds into it, below `kernel/` of its modules and without
/// their endings. What these need is found from them.
const WANTED: [&str; 6] = [
    "drivers/net/tun",
    "drivers/net/veth",
    "net/ipv4/fou",
    "net/ipv4/ip_gre",
    "net/ipv6/fou6",
    "net/ipv6/ip6_gre",
];

/// Folders in which those are that others need.
const NEEDED_IN: [&str; 8] = [
    "net/ipv4",
    "net/ipv6",
    "net/core",
    "lib",
    "lib/crypto",
    "arch/x86/crypto",
    "crypto",
    "arch/x86/lib",
];

/// A kernel with all modules that are wanted.
pub(super) struct Kernel {
    /// Its version, such as `6.1.0-56-cloud-amd64`.
    pub(super) version: String,
    /// The image that boots.
    pub(super) image: PathBuf,
    /// The folder `kernel` of its modules.
    modules: PathBuf,
    /// Those that it is wanted for.
    wanted: Vec<String>,
}

/// A module, ready to be loaded.
pub(super) struct Module {
    /// Its name, without an ending.
    pub(super) name: String,
    /// The object file, uncompressed.
    pub(super) object: Vec<u8>,
}

impl Kernel {
    /// The kernel with the greatest version below `root`, which is `/` or a folder in which a
    /// package was unpacked. `None` if there is no readable one with the modules of the cases and those `besides`.
    pub(super) fn find(root: &Path, besides: &[&str]) -> Option<Self> {
        let wanted: Vec<_> = WANTED.iter().chain(besides).map(ToString::to_string).collect();
        let images = fs::read_dir(root.join("boot")).ok()?;
        let versions = images.filter_map(|entry| {
            let name = entry.ok()?.file_name().into_string().ok()?;
            name.strip_prefix("vmlinuz-").map(str::to_owned)
        });
        let kernels = versions.filter_map(|version| {
            let image = root.join("boot").join(format!("vmlinuz-{version}"));
            fs::File::open(&image).ok()?;
            let modules = ["lib/modules", "usr/lib/modules"]
                .map(|folder| root.join(folder).join(&version).join("kernel"));
            let modules = modules.into_iter().find(|folder| folder.is_dir())?;
            let kernel = Self { version, image, modules, wanted: wanted.clone() };
            wanted.iter().all(|module| kernel.file(module).is_some()).then_some(kernel)
        });
        kernels.max_by_key(|kernel| numbers(&kernel.version))
    }

    /// All modules in an order in which they can be loaded.
    pub(super) fn modules(&self) -> anyhow::Result<Vec<Module>> {
        let mut loaded = Vec::new();
        for module in &self.wanted {
            let file = self.file(module).with_context(|| format!("{module} has gone"))?;
            self.load(&file, &mut loaded)?;
        }
        Ok(loaded)
    }

    /// Adds a module to `loaded`, after those that it needs.
    fn load(&self, file: &Path, loaded: &mut Vec<Module>) -> anyhow::Result<()> {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let name = name.split('.').next().unwrap_or_default().to_owned();
        if loaded.iter().any(|module| module.name == name) {
            return Ok(());
        }
        let object = object(file)?;
        for needed in needs(&object) {
            let file = NEEDED_IN.iter().find_map(|folder| self.file(&format!("{folder}/{needed}")));
            let file = file.with_context(|| format!("{name} needs {needed}, which is nowhere"))?;
            self.load(&file, loaded)?;
        }
        loaded.push(Module { name, object });
        Ok(())
    }

    /// The file of a module, compressed or not.
    fn file(&self, module: &str) -> Option<PathBuf> {
        let files = ["ko", "ko.xz"].map(|ending| self.modules.join(format!("{module}.{ending}")));
        files.into_iter().find(|file| file.exists())
    }
}

/// The numbers in a version, by which versions are compared.
fn numbers(version: &str) -> Vec<u32> {
    version.split(|c: char| !c.is_ascii_digit()).filter_map(|digits| digits.parse().ok()).collect()
}

/// A module's object file, uncompressed by busybox if need be.
fn object(file: &Path) -> anyhow::Result<Vec<u8>> {
    if file.extension().is_none_or(|ending| ending != "xz") {
        return fs::read(file).with_context(|| format!("cannot read {}", file.display()));
    }
    let unpacked = Command::new("busybox").args(["unxz", "-c"]).arg(file).output();
    let unpacked = unpacked.context("cannot start busybox")?;
    if !unpacked.status.success() {
        bail!("{}: {}", file.display(), String::from_utf8_lossy(&unpacked.stderr).trim());
    }
    Ok(unpacked.stdout)
}

/// The modules that a module needs, from the line `depends=` among its strings, as modinfo(8) reads it.
fn needs(object: &[u8]) -> Vec<String> {
    const LINE: &[u8] = b"\0depends=";
    let Some(at) = object.windows(LINE.len()).position(|bytes| bytes == LINE) else {
        return Vec::new();
    };
    let list = object[at + LINE.len()..].split(|byte| *byte == 0).next().unwrap_or_default();
    let list = String::from_utf8_lossy(list);
    list.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A root with kernels that have these modules, each with what it needs.
    fn root(kernels: &[&str], modules: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("boot")).unwrap();
        for version in kernels {
            fs::write(root.path().join(format!("boot/vmlinuz-{version}")), "").unwrap();
            for (module, needs) in modules {
                let path = format!("lib/modules/{version}/kernel/{module}.ko");
                let file = root.path().join(path);
                fs::create_dir_all(file.parent().unwrap()).unwrap();
                fs::write(file, format!("elf\0license=GPL\0depends={needs}\0x")).unwrap();
            }
        }
        root
    }

    #[test]
    fn what_a_module_needs_is_loaded_before_it() {
        let needs = |module: &&'static str| match *module {
            "net/ipv4/fou" => (*module, "udp_tunnel,ip6_udp_tunnel"),
            "net/ipv4/ip_gre" => (*module, "gre"),
            "net/ipv6/ip6_gre" => (*module, "gre"),
            other => (other, ""),
        };
        let mut modules: Vec<_> = WANTED.iter().map(needs).collect();
        modules.extend([
            ("net/ipv4/udp_tunnel", ""),
            ("net/ipv6/ip6_udp_tunnel", "udp_tunnel"),
            ("net/ipv4/gre", ""),
        ]);
        let root = root(&["6.1.0-9-amd64", "6.1.0-10-amd64"], &modules);
        let kernel = Kernel::find(root.path(), &[]).unwrap();
        assert_eq!(kernel.version, "6.1.0-10-amd64");
        let names: Vec<_> =
            kernel.modules().unwrap().into_iter().map(|module| module.name).collect();
        let order = "tun veth udp_tunnel ip6_udp_tunnel fou gre ip_gre fou6 ip6_gre";
        assert_eq!(names.join(" "), order);
    }

    #[test]
    fn a_kernel_that_lacks_a_module_is_passed_over() {
        let all: Vec<_> = WANTED.iter().map(|module| (*module, "")).collect();
        assert!(Kernel::find(root(&["6.1.0"], &all).path(), &[]).is_some());
        assert!(Kernel::find(root(&["6.1.0"], &all).path(), &["net/other"]).is_none());
        assert!(Kernel::find(root(&["6.1.0"], &all[1..]).path(), &[]).is_none());
        assert!(Kernel::find(root(&[], &all).path(), &[]).is_none());
    }
}

//! Where code comes from: source lines with inlined frames, and sizes of types, from debug information.

use crate::image::Image;
use gimli::{EndianRcSlice, LittleEndian};
use std::collections::BTreeMap;
use std::rc::Rc;

type Reader = EndianRcSlice<LittleEndian>;

/// One frame: the innermost comes first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The file's name without folders.
    pub file: String,
    pub line: u32,
    pub function: String,
}

pub struct Lines {
    context: Option<addr2line::Context<Reader>>,
    dwarf: Option<Rc<gimli::Dwarf<Reader>>>,
}

impl Lines {
    /// Without debug information, or with what cannot be read, no place is known.
    pub fn new(image: &Image) -> Lines {
        let section = |id: gimli::SectionId| -> Result<Reader, gimli::Error> {
            let bytes = image.debug.get(id.name()).cloned().unwrap_or_default();
            Ok(EndianRcSlice::new(Rc::from(bytes), LittleEndian))
        };
        let dwarf = gimli::Dwarf::load(section).ok().map(Rc::new);
        let again = gimli::Dwarf::load(section).ok();
        Lines {
            context: again.and_then(|d| addr2line::Context::from_dwarf(d).ok()),
            dwarf,
        }
    }

    /// The frames of an address, innermost first.
    pub fn frames(&self, address: u64) -> Vec<Frame> {
        let mut all = Vec::new();
        let Some(context) = &self.context else {
            return all;
        };
        let found = context.find_frames(address).skip_all_loads();
        let Ok(mut frames) = found else { return all };
        while let Ok(Some(f)) = frames.next() {
            if all.len() > 32 {
                break;
            }
            let name = f
                .function
                .as_ref()
                .and_then(|n| n.demangle().ok().map(|n| n.into_owned()));
            let place = f.location.as_ref();
            let file = place.and_then(|l| l.file).unwrap_or("");
            all.push(Frame {
                file: file.rsplit('/').next().unwrap_or(file).to_string(),
                line: place.and_then(|l| l.line).unwrap_or(0),
                function: crate::image::plain_name(&name.unwrap_or_default()),
            });
        }
        all.retain(|f| f.line != 0 && !f.file.is_empty());
        all
    }

    /// The module each of these functions stands in, by its name.
    pub fn modules(&self, wanted: &dyn Fn(&str) -> bool) -> BTreeMap<String, String> {
        let mut all = BTreeMap::new();
        let Some(dwarf) = self.dwarf.as_ref() else {
            return all;
        };
        let mut units = dwarf.units();
        while let Ok(Some(header)) = units.next() {
            let Ok(unit) = dwarf.unit(header) else {
                continue;
            };
            let mut entries = unit.entries();
            let mut path: Vec<(isize, String)> = Vec::new();
            while let Ok(Some(entry)) = entries.next_dfs() {
                let depth = entry.depth();
                while path.last().is_some_and(|(d, _)| *d >= depth) {
                    path.pop();
                }
                let name = || {
                    let value = entry.attr_value(gimli::DW_AT_name)?;
                    let text = dwarf.attr_string(&unit, value).ok()?;
                    let text = gimli::Reader::to_string_lossy(&text).ok()?;
                    Some(text.into_owned())
                };
                match entry.tag() {
                    gimli::DW_TAG_namespace => path.push((depth, name().unwrap_or_default())),
                    gimli::DW_TAG_subprogram => {
                        if let Some(name) = name().filter(|n| wanted(n)) {
                            let module: Vec<&str> = path.iter().map(|(_, n)| n.as_str()).collect();
                            all.insert(name, module.join("::"));
                        }
                    }
                    _ => {}
                }
            }
        }
        all
    }

    /// The size in bytes of a structure, union, class or type name.
    pub fn size_of(&self, name: &str) -> Option<u64> {
        let dwarf = self.dwarf.as_ref()?;
        let mut units = dwarf.units();
        while let Ok(Some(header)) = units.next() {
            let Ok(unit) = dwarf.unit(header) else {
                continue;
            };
            let mut entries = unit.entries();
            while let Ok(Some(entry)) = entries.next_dfs() {
                let typed = matches!(
                    entry.tag(),
                    gimli::DW_TAG_structure_type
                        | gimli::DW_TAG_union_type
                        | gimli::DW_TAG_class_type
                        | gimli::DW_TAG_typedef
                        | gimli::DW_TAG_base_type
                );
                if !typed {
                    continue;
                }
                let Some(value) = entry.attr_value(gimli::DW_AT_name) else {
                    continue;
                };
                let Ok(text) = dwarf.attr_string(&unit, value) else {
                    continue;
                };
                let Ok(text) = gimli::Reader::to_string_lossy(&text) else {
                    continue;
                };
                if text != name {
                    continue;
                }
                if let Some(size) = size_of_entry(&unit, entry, 0) {
                    return Some(size);
                }
            }
        }
        None
    }
}

fn size_of_entry(
    unit: &gimli::Unit<Reader>,
    entry: &gimli::DebuggingInformationEntry<Reader>,
    depth: u32,
) -> Option<u64> {
    if let Some(size) = entry
        .attr_value(gimli::DW_AT_byte_size)
        .and_then(|v| v.udata_value())
    {
        return Some(size);
    }
    match entry.attr_value(gimli::DW_AT_type) {
        Some(gimli::AttributeValue::UnitRef(at)) if depth < 16 => {
            let inner = unit.entry(at).ok()?;
            size_of_entry(unit, &inner, depth + 1)
        }
        _ => None,
    }
}

//! As much of JSON Schema as our schemas and that of SARIF use. A keyword that is not known here fails,
//! so that a schema cannot say more than is checked; `pattern` fails where it would have to be matched.

use serde_json::Value;

const KNOWN: &[&str] = &[
    "$schema",
    "$defs",
    "title",
    "description",
    "type",
    "enum",
    "required",
    "properties",
    "additionalProperties",
    "items",
    "anyOf",
    "$ref",
    "$comment",
    "$id",
    "definitions",
    "default",
    "format",
];

/// Every way in which the value does not fit the schema.
pub fn errors(schema: &Value, value: &Value) -> Vec<String> {
    let mut errors = Vec::new();
    check(schema, schema, value, "$", &mut errors);
    errors
}

fn check(root: &Value, schema: &Value, value: &Value, at: &str, errors: &mut Vec<String>) {
    let Some(rules) = schema.as_object() else {
        errors.push(format!("{at}: the schema is no object"));
        return;
    };
    for (keyword, rule) in rules {
        match keyword.as_str() {
            "$ref" => {
                let path = rule.as_str().and_then(|r| r.strip_prefix('#'));
                match path.and_then(|p| root.pointer(p)) {
                    Some(target) => check(root, target, value, at, errors),
                    None => errors.push(format!("{at}: no definition {rule}")),
                }
            }
            "type" => {
                let names: Vec<&str> = match rule {
                    Value::Array(all) => all.iter().filter_map(Value::as_str).collect(),
                    one => one.as_str().into_iter().collect(),
                };
                if !names.iter().any(|n| has_type(n, value)) {
                    errors.push(format!("{at}: {value} is not of type {rule}"));
                }
            }
            "enum" => {
                if !rule.as_array().is_some_and(|all| all.contains(value)) {
                    errors.push(format!("{at}: {value} is not one of {rule}"));
                }
            }
            "required" => {
                for name in rule
                    .as_array()
                    .into_iter()
                    .flatten()
                    .filter_map(Value::as_str)
                {
                    if value.is_object() && value.get(name).is_none() {
                        errors.push(format!("{at}: `{name}` is missing"));
                    }
                }
            }
            "properties" => {
                for (name, inner) in value.as_object().into_iter().flatten() {
                    match rule.get(name) {
                        Some(s) => check(root, s, inner, &format!("{at}.{name}"), errors),
                        None if rules.get("additionalProperties") == Some(&Value::Bool(false)) => {
                            errors.push(format!("{at}: `{name}` is not allowed"));
                        }
                        None => {}
                    }
                }
            }
            "items" => {
                for (i, inner) in value.as_array().into_iter().flatten().enumerate() {
                    check(root, rule, inner, &format!("{at}[{i}]"), errors);
                }
            }
            "minimum" | "maximum" => {
                let (bound, got) = (rule.as_f64(), value.as_f64());
                let below = matches!((got, bound), (Some(v), Some(b)) if v < b);
                let above = matches!((got, bound), (Some(v), Some(b)) if v > b);
                if (keyword == "minimum" && below) || (keyword == "maximum" && above) {
                    errors.push(format!("{at}: {value} is beyond the {keyword} {rule}"));
                }
            }
            "minItems" => {
                let few = |a: &Vec<Value>| Some((a.len() as u64) < rule.as_u64()?);
                if value.as_array().and_then(few) == Some(true) {
                    errors.push(format!("{at}: fewer than {rule} items"));
                }
            }
            "uniqueItems" => {
                let twice = |a: &Vec<Value>| (1..a.len()).any(|i| a[..i].contains(&a[i]));
                if rule == &Value::Bool(true) && value.as_array().is_some_and(twice) {
                    errors.push(format!("{at}: an item is there twice"));
                }
            }
            "pattern" => {
                if value.is_string() {
                    errors.push(format!("{at}: the checker does not match {rule}"));
                }
            }
            "anyOf" | "oneOf" => {
                let mut tried = Vec::new();
                let fits = rule.as_array().into_iter().flatten().any(|s| {
                    let mut inner = Vec::new();
                    check(root, s, value, at, &mut inner);
                    tried.extend(inner.iter().cloned());
                    inner.is_empty()
                });
                if !fits {
                    errors.extend(tried);
                }
            }
            other if KNOWN.contains(&other) => {}
            other => errors.push(format!("{at}: the checker does not know `{other}`")),
        }
    }
}

fn has_type(name: &str, value: &Value) -> bool {
    match name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => false,
    }
}

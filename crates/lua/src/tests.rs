//! Scripts in the sandbox, with a host that echoes.

use super::*;

struct Echo;

impl Host for Echo {
    fn call(&mut self, args: Vec<Vec<u8>>, _is_resp3: bool) -> Answer {
        match args[0].as_slice() {
            b"fail" => Answer::Error(b"WRONGTYPE no".to_vec()),
            b"nil" => Answer::Null(false),
            _ => Answer::Array(args.into_iter().map(Answer::Bulk).collect()),
        }
    }

    fn may_call(&mut self, _args: Vec<Vec<u8>>) -> bool {
        true
    }

    fn log(&mut self, _level: i64, _text: &str) {}

    fn version(&self) -> &'static str {
        "7.0.15"
    }
}

fn run(body: &str) -> Result<Answer, String> {
    let mut interpreter = Interpreter::new(Switch::default(), 7).unwrap();
    interpreter.load("sha", body.as_bytes()).map_err(|error| error.0)?;
    let (keys, args) = ([b"k".to_vec()], [b"a".to_vec(), b"b".to_vec()]);
    let input = Input { name: "sha", keys: &keys, args: &args };
    interpreter.run(input, &mut Echo).map_err(|error| error.0)
}

fn bulk(text: &str) -> Answer {
    Answer::Bulk(text.as_bytes().to_vec())
}

#[test]
fn results_become_replies() {
    let cases = [
        ("return 3.99", Answer::Integer(3)),
        ("return 'x'", bulk("x")),
        ("return true", Answer::Integer(1)),
        ("return false", Answer::Null(false)),
        ("return {ok='FINE'}", Answer::Simple(b"FINE".to_vec())),
        ("return {err='MY x'}", Answer::Error(b"MY x".to_vec())),
        ("return {1,2,nil,4}", Answer::Array(vec![Answer::Integer(1), Answer::Integer(2)])),
        ("return {KEYS[1],ARGV[2]}", Answer::Array(vec![bulk("k"), bulk("b")])),
        ("return redis.call('x', 1, 2.5)", Answer::Array(vec![bulk("x"), bulk("1"), bulk("2.5")])),
        ("return redis.call('nil')", Answer::Null(false)),
        ("return redis.pcall('fail').err", bulk("WRONGTYPE no")),
        ("return select(2, pcall(redis.call, 'fail'))", bulk("WRONGTYPE no")),
        ("return redis.error_reply('foo')", Answer::Error(b"ERR foo".to_vec())),
        ("local n = math.random(100) return n >= 1 and n <= 100 and n % 1", Answer::Integer(0)),
        ("return loadstring('return 5')()", Answer::Integer(5)),
        ("return select(2, pcall(function() error('a') end))", bulk("user_script:1: a")),
        ("return redis.sha1hex('abc')", bulk("a9993e364706816aba3e25717850c26c9cd0d89d")),
    ];
    for (body, expected) in cases {
        assert_eq!(run(body), Ok(expected), "{body}");
    }
}

#[test]
fn errors_say_where_they_came_from() {
    let cases = [
        ("error('abc')", "ERR user_script:1: abc script: sha, on @user_script:1."),
        ("\nreturn redis.call('fail')", "WRONGTYPE no script: sha, on @user_script:2."),
        ("error({err='ABC def'})", "ABC def script: sha, on @user_script:1."),
        (
            "x = 1",
            "ERR user_script:1: Attempt to modify a readonly table script: sha, on @user_script:1.",
        ),
        (
            "return x",
            "ERR user_script:1: Script attempted to access nonexistent global variable 'x' \
             script: sha, on @user_script:1.",
        ),
        (
            "return cjson.encode({[1]=1,[15]=2})",
            "ERR user_script:1: Cannot serialise table: excessively sparse array script: sha, on \
             @user_script:1.",
        ),
        (
            "retur 1",
            "ERR Error compiling script (new function): user_script:1: '=' expected near '1'",
        ),
    ];
    for (body, expected) in cases {
        assert_eq!(run(body), Err(expected.to_owned()), "{body}");
    }
}

#[test]
fn libraries_work() {
    let cases = [
        ("return cjson.encode({1,2,{a=1.5}})", "[1,2,{\"a\":1.5}]"),
        (
            "return cjson.encode(cjson.decode('{\"a\":[1,null,\"x\\\\u00e9\"]}'))",
            "{\"a\":[1,null,\"xé\"]}",
        ),
        ("return cjson.encode({})", "{}"),
        ("return bit.tohex(65535,4)", "ffff"),
        ("return tostring(bit.band(0xff00ff, 0xffff))", "255"),
        (
            "local t = cmsgpack.unpack(cmsgpack.pack({1,'a',{b=-70000}})) return tostring(t[3].b)",
            "-70000",
        ),
        (
            "local packed = struct.pack('>I2bs', 258, -7, 'x') \
             local a, b, c = struct.unpack('>I2bs', packed) return a..b..c",
            "258-7x",
        ),
        ("return tostring(struct.size('>I2bd'))", "11"),
    ];
    for (body, expected) in cases {
        assert_eq!(run(body), Ok(bulk(expected)), "{body}");
    }
}

#[test]
fn scripts_cannot_leave_the_sandbox() {
    for name in
        ["os", "io", "debug", "require", "dofile", "package", "print", "loadfile", "newproxy"]
    {
        let body = format!("return {name}");
        assert!(run(&body).unwrap_err().contains("nonexistent global variable"), "{name}");
    }
    for body in [
        "string.rep = 1",
        "getmetatable(_G).__index = nil",
        "redis.call = 1",
        "setmetatable(_G, {})",
        "getmetatable('').__index = {}",
    ] {
        assert!(run(body).is_err(), "{body}");
    }
    // Compiled code is refused: it could read and write memory.
    let body = "local f = loadstring(string.dump(function() end)) return tostring(f)";
    assert_eq!(run(body), Ok(bulk("nil")));
}

#[test]
fn memory_is_bounded() {
    let error =
        run("local t = {} for i = 1, 1000 do t[i] = string.rep('x', 1000000 + i) end").unwrap_err();
    assert!(error.contains("not enough memory"), "{error}");
}

#[test]
fn a_script_is_ended_from_outside_even_if_it_catches_errors() {
    let switch = Switch::default();
    let mut interpreter = Interpreter::new(switch.clone(), 7).unwrap();
    let body = b"while true do pcall(function() while true do end end) end";
    interpreter.load("sha", body).unwrap();
    let killer = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(100));
        switch.kill();
    });
    let error =
        interpreter.run(Input { name: "sha", keys: &[], args: &[] }, &mut Echo).unwrap_err();
    assert!(error.0.contains("Script killed by user"), "{}", error.0);
    killer.join().unwrap();
}

#[test]
fn libraries_register_functions() {
    let mut interpreter = Interpreter::new(Switch::default(), 7).unwrap();
    let body = b"redis.register_function('f', function(keys, args) return args[1] end)";
    let functions = interpreter.load_library(body, &mut Echo).unwrap();
    assert_eq!(functions[0].name, "f");
    let args = [b"x".to_vec()];
    let input = Input { name: "f", keys: &[], args: &args };
    assert_eq!(interpreter.call(input, &mut Echo), Ok(bulk("x")));
    assert!(interpreter.load_library(b"return 1", &mut Echo).is_err());
}

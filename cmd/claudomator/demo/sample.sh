git init -q -b main greeter && cd greeter
mkdir tests
cat >greet.sh <<'EOF'
#!/bin/sh
echo "Hello, ${1:-world}!"
EOF
cat >tests/plain.sh <<'EOF'
test "$(sh greet.sh)" = "Hello, world!"
test "$(sh greet.sh Ada)" = "Hello, Ada!"
EOF
cat >tests/shout.sh <<'EOF'
case "$(sh greet.sh --shout Ada)" in "HELLO, ADA!"*) ;; *) exit 1 ;; esac
EOF
cat >check.sh <<'EOF'
#!/bin/sh
for t in tests/*.sh; do
	sh -eu "$t" || { echo "not passed: $t"; failed=1; }
done
test -z "${failed:-}" && echo "all tests passed"
EOF
git add . && git -c user.name=Demo -c user.email=demo@localhost commit -q -m "A greeter, and a test of what it cannot do yet"
git log --oneline
sh check.sh || true

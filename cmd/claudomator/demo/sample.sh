git init -q -b main greeter && cd greeter
mkdir voices tests
cat >greet.sh <<'EOF'
#!/bin/sh
# greet.sh NAME [VOICE]: greets NAME in a voice, which is a script of voices/.
sh "voices/${2:-plain}.sh" "${1:-you}"
EOF
cat >voices/plain.sh <<'EOF'
echo "Hello, $1!"
EOF
cat >tests/plain.sh <<'EOF'
test "$(sh greet.sh Ada)" = "Hello, Ada!"
EOF
cat >check.sh <<'EOF'
#!/bin/sh
# check.sh: runs all tests.
for t in tests/*.sh; do
	sh -eu "$t" || { echo "failed: $t"; failed=1; }
done
test -z "${failed:-}" && echo "all tests pass"
EOF
git add . && git -c user.name=You -c user.email=you@localhost commit -q -m "A greeter with one voice"

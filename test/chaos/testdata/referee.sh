#!/bin/sh
# What the judges of a story run: referee.sh ROLE. Security and arbitration reject
# the first attempt of what is flawed, and of the root, which lacks its crown then.
# Nothing else is rejected: what stands below a flawed node holds its flaw as well.
. "$CHAOS/run.sh"
cat >/dev/null
flaw=
if ls flaw-* >/dev/null 2>&1 || [ -e story/f -a -e story/e -a ! -e story/crown ]; then
	judged=$(tool get_context | tr -d ' \n' | sed -n 's/.*"attempt":{"task_id":"\([^"]*\)".*/\1/p')
	[ -n "$judged" ] || kill -9 $$ # it says nothing, rather than something wrong
	key=$(cat "$CHAOS/keys/$judged" 2>/dev/null) || key=root
	[ ! -e "flaw-$key" ] || flaw=flaw-$key
	[ "$key" != root ] || [ -e story/crown ] || flaw=crown
fi
[ -n "$flaw" ] || exit 0
case $1 in
evaluator-security)
	tool report_verdict "{\"approved\":false,\"reasoning\":\"flawed\",\"findings\":[{\"kind\":\"flaw\",\"severity\":\"high\",\"file\":\"$flaw\",\"line\":1,\"text\":\"there is a flaw\"}]}" >/dev/null
	exit 1
	;;
arbitration)
	echo "rejected: $flaw"
	exit 1
	;;
esac
exit 0

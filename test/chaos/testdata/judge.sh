#!/bin/sh
# What every judge of a random tree runs: it rejects what is flawed, some of them by
# the exit code alone, some by a report.
. "$CHAOS/run.sh"
cat >/dev/null
flaws=$(ls -d flaw-* 2>/dev/null)
case $1 in
evaluator-security)
	[ -z "$flaws" ] || tool report_verdict \
		'{"approved":false,"reasoning":"flawed","findings":[{"kind":"flaw","severity":"high","file":"a","line":1,"text":"there is a flaw"}]}' >/dev/null
	[ -z "$flaws" ]
	;;
arbitration)
	[ -z "$flaws" ] || { echo "rejected: $flaws"; exit 1; }
	;;
checker)
	[ -z "$flaws" ] || { echo "the checker sees $flaws"; exit 1; }
	;;
esac

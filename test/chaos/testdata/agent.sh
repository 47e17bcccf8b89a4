#!/bin/sh
# What every agent of a random tree runs: agent.sh PART KEY. It notes in the ledger
# what it has made, after it has made it.
set -eu
part=$1 key=$2
. "$CHAOS/run.sh"

write() { # NAME: a file that no other run writes
	mkdir -p work
	echo "$1 $task $run" >"work/$1-$run"
	echo "file $task $run $1" >>"$ledger"
}
commit() { # NAME
	write "$1"
	git add -A
	git commit -qm "$1"
	head=$(git rev-parse HEAD) # which alone may be killed
	echo "commit $task $run $head" >>"$ledger"
}
mark() { mkdir -p marks && echo "$key" >"marks/$key"; }
sees() { test -e "marks/$1" || echo "blind $task $run $1" >>"$ledger"; }
child() { spawn "$1" agent.sh "$2" "$key-$1" "${3-}"; } # NAME PART [DEPENDS_ON]

case $part in
leaf)
	[ "$key" = "${key%-*}" ] || sees "${key%-*}" # what its parent did before
	write first
	nap
	mark
	commit done
	write late
	;;
after) # a leaf that needs its sibling's work
	sees "${key%-*}-one"
	mark
	commit done
	nap
	;;
daemon) # leaves a process behind that wants to live for ever
	(trap '' TERM HUP; setsid sleep 300) >/dev/null 2>&1 &
	write first
	nap
	mark
	commit done
	;;
parent)
	mark
	commit begun
	child one leaf
	nap
	child two daemon
	child three after one
	tool report_summary "{\"text\":\"summary of $run\"}" >/dev/null
	write late
	;;
nested)
	mark
	commit begun
	child one leaf
	child two parent
	nap
	;;
clashing) # its children write the same line
	mark
	commit begun
	child one clash
	child two clash
	;;
clash)
	if grep -qs '^<<<<<<<' "shared-${key%-*}"; then # our work is the conflict
		sed -i '/^\(<<<<<<<\|=======\|>>>>>>>\)/d' "shared-${key%-*}"
	else
		echo "$key" >"shared-${key%-*}"
	fi
	nap
	mark
	commit done
	;;
asker)
	mark
	write asking
	told answer || {
		commit asked
		tool ask_user '{"question":"this or that?","options":["this","that"]}' >/dev/null
		sleep 60
	}
	commit answered
	;;
flawed) # rejected by its judges, then mended
	mark
	if told rejection; then rm -f "flaw-$key"; else echo "$key" >"flaw-$key"; fi
	commit done
	nap
	;;
hall) # an arbitrated parent
	mark
	commit begun
	child one flawed
	child two leaf
	;;
patient) # is done when it may be
	mark
	commit done
	: >"$CHAOS/ready-$key"
	for _ in $(seq 600); do
		[ ! -e "$CHAOS/go" ] || exit 0
		sleep 0.1
	done
	exit 1
	;;
main) # all trees that do this want the same line of the user's branch
	echo "$key" >line
	mark
	commit done
	;;
*)
	echo "no part $part" >&2
	exit 2
	;;
esac

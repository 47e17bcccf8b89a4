#!/bin/sh
# What every agent of the storm runs: agent.sh PART KEY. It holds a lock while it
# or anything it started lives, so that a second run at the same time is seen,
# and it notes in the ledger what it has made, after it has made it.
set -eu
part=$1 key=$2
task=$CLAUDOMATOR_TASK_ID run=$CLAUDOMATOR_EXECUTION_ID
ledger=$CHAOS/ledger

exec 9>"$CHAOS/locks/$task"
flock -n -E 99 9 || { # it may have been killed: only 99 says that another run lives
	[ $? -ne 99 ] || echo "twice $task $run held" >>"$ledger"
	exit 1
}

write() { # NAME: a file that no other run writes
	mkdir -p work
	echo "$1 $task $run" >"work/$1-$run"
	echo "file $task $run $1" >>"$ledger"
}
commit() { # NAME
	write "$1"
	git add -A
	git commit -qm "$1"
	echo "commit $task $run $(git rev-parse HEAD)" >>"$ledger"
}
mark() { mkdir -p marks && echo "$key" >"marks/$key"; }
sees() { test -e "marks/$1" || echo "blind $task $run $1" >>"$ledger"; }
tool() { "$CLAUDOMATOR_BIN" tool "$@"; }
spawn() { # NAME PART [DEPENDS_ON]
	tool spawn_subtask "{\"name\":\"$1\",\"instructions\":\"exec sh \$CHAOS/agent.sh $2 $key-$1\",\"depends_on\":[${3:+\"$3\"}]}" >/dev/null
}
nap() { sleep "0.$(($(date +%N | tail -c 4 | sed 's/^0*//;s/^$/0/') % 3))"; }
rejected() { tool get_context | grep -q '"rejection"'; }

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
	spawn one leaf
	nap
	spawn two daemon
	spawn three after one
	tool report_summary "{\"text\":\"summary of $run\"}" >/dev/null
	write late
	;;
nested)
	mark
	commit begun
	spawn one leaf
	spawn two parent
	nap
	;;
clashing) # its children write the same line
	mark
	commit begun
	spawn one clash
	spawn two clash
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
	tool get_context | grep -q '"answer"' || {
		commit asked
		tool ask_user '{"question":"this or that?","options":["this","that"]}' >/dev/null
		sleep 60
	}
	commit answered
	;;
flawed) # rejected by its judges, then mended
	mark
	if rejected; then rm -f "flaw-$key"; else echo "$key" >"flaw-$key"; fi
	commit done
	nap
	;;
hall) # an arbitrated parent
	mark
	commit begun
	spawn one flawed
	spawn two leaf
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

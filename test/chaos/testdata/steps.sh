# What the agents of a sweep run: steps.sh PART KEY. What they make depends on part
# and key alone.
set -eu
part=$1 key=$2
. "$CHAOS/run.sh"

put() { echo "$2" >"$1"; } # NAME TEXT
save() {
	git add -A
	git diff --cached --quiet || git commit -qm "$key"
	head=$(git rev-parse HEAD) # which alone may be killed
	echo "commit $task $run $head" >>"$ledger"
}
child() { spawn "$1" steps.sh leaf "$key-$1" "${2-}"; } # NAME [DEPENDS_ON]

case $part in
leaf)
	put "$key" "$key"
	save
	put "$key-late" "$key" # is not committed: the server does it
	;;
parent)
	put "$key" "$key"
	save
	child one
	child two
	child three one
	;;
line) # two of them conflict
	put line "$key"
	save
	;;
asker)
	put "$key" "$key"
	told answer || {
		tool ask_user '{"question":"this or that?","options":["this","that"]}' >/dev/null
		sleep 60
	}
	put "$key-answered" "$key"
	save
	;;
flawed) # its judges reject it once
	if told rejection; then rm -f "flaw-$key"; else put "flaw-$key" "$key"; fi
	put "$key" "$key"
	save
	;;
later) # has a subtask, which cannot begin before this ends
	put "$key" "$key"
	save
	[ -e "$CHAOS/go" ] || child soon
	until [ -e "$CHAOS/go" ]; do sleep 0.1; done
	;;
fails)
	put "$key" "$key"
	git add -A
	exit 3
	;;
esac

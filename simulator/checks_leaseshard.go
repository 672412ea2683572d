package simulator

import (
	"github.com/lambdaidem/toolkit/internal/memdynamo"
)

// leaseShard checks the shard after a write to a record. A process with the index gives a record a
// shard when it puts it in progress, and removes the shard in the end. A process without the index
// leaves a shard as it is, unless it begins, claims or replaces the whole record.
func (j *judge) leaseShard(a *actor, w memdynamo.Write, as change) {
	before, after := w.Before[leaseShard].Text, w.After[leaseShard].Text
	_, there := w.After[leaseShard]
	in := stateOf(w.After) == inProgress
	begins := as.begins || as.over || as.claims // writes the whole record, or all that belongs to the attempt
	switch {
	case there && after == "":
		j.brokenLocked(a, CheckLeaseShard, "its shard is no text: %v", w.After[leaseShard])
	case !a.indexes() && as.begins && there:
		j.brokenLocked(a, CheckLeaseShard, "it has the shard %s, written by a process without the index", after)
	case !a.indexes() && !as.begins && !as.claims && !as.whole && before != after:
		j.brokenLocked(a, CheckLeaseShard, "a process without the index made the shard %q of %q", after, before)
	case a.indexes() && in && begins && !there:
		j.brokenLocked(a, CheckLeaseShard, "it is in progress and has no shard")
	case a.indexes() && !in && there:
		j.brokenLocked(a, CheckLeaseShard, "it is %s and has the shard %s", stateOf(w.After), after)
	case in && !begins && before != after, before != "" && after != "" && before != after:
		j.brokenLocked(a, CheckLeaseShard, "the shard %q became %q", before, after)
	}
	if in && there {
		j.b.paths[LeaseIndexed]++
	}
	if before != "" && !there {
		j.b.paths[LeaseUnindexed]++
	}
}

const leaseShard = "lease_shard"

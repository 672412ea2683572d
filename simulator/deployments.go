package simulator

import (
	"math/rand/v2"
	"time"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// This file simulates deployments that change how the guard makes fingerprints, while
// requests are in progress. During a deployment, processes of the old version and of the new
// one run side by side.

// version has the options for fingerprints of one deployed version of the function.
type version struct {
	secrets [][]byte
	ignore  []string
}

// deployments are the versions of a plan, in the order in which they are deployed. The
// zero value is one version, which never changes.
type deployments struct {
	versions []version
	every    time.Duration // from the start of one deployment to the start of the next
}

var (
	oldSecret = []byte("the simulator's old secret, of enough bytes")
	newSecret = []byte("the simulator's new secret, of enough bytes")
)

// rollouts are changes from docs/operate.md, "Something changes in a deployment", each in
// the order of steps given there. None of them makes the guard refuse a retry of the same
// payload: no payload has a member sentAt, which the last rollout ignores.
var rollouts = [][]version{
	{ // a fingerprint secret is rotated
		{secrets: [][]byte{oldSecret}},
		{secrets: [][]byte{oldSecret, newSecret}},
		{secrets: [][]byte{newSecret, oldSecret}},
	},
	{ // the first fingerprint secret
		{},
		{secrets: [][]byte{lambdaidem.Unsigned(), newSecret}},
		{secrets: [][]byte{newSecret, lambdaidem.Unsigned()}},
	},
	ignoresPointer,
}

// ignoresPointer is the rollout of a pointer in FingerprintIgnore. The guard can't compare a
// payload with one that was recorded before.
var ignoresPointer = []version{{}, {ignore: []string{"/sentAt"}}}

// newDeployments gives some plans deployments. It draws from a random stream of its own,
// so that the rest of each plan does not depend on it.
func newDeployments(seed uint64, p *plan) {
	r := rand.New(rand.NewPCG(seed, 0xde9107ed))
	if r.Float64() >= 0.2 {
		return
	}
	p.deployments = deployments{
		versions: rollouts[r.IntN(len(rollouts))],
		every:    2*p.timeout + p.paced(time.Duration(r.Int64N(int64(3*time.Second)))),
	}
}

// newest returns the index of the newest version. at is the time since the world began.
func (d *deployments) newest(at time.Duration) int {
	return min(int(at/d.every), len(d.versions)-1)
}

// version returns the version that the actor's process runs.
func (a *actor) version() version {
	if d := &a.w.plan.deployments; len(d.versions) > 0 {
		return d.versions[a.versionIndex()]
	}
	return version{}
}

// versionIndex returns the index of the version that the actor's process runs. Most
// processes run the newest version at the time when they start. Some run the version before
// that, unless the next deployment would begin before their first invocation is over: then three
// versions would run at the same time.
func (a *actor) versionIndex() int {
	d, started := &a.w.plan.deployments, a.starter()
	at := started.began.Sub(a.w.born)
	newest := d.newest(at)
	if started.id%3 == 0 && at%d.every < d.every-a.w.plan.timeout {
		return max(newest-1, 0)
	}
	return newest
}

// replaced reports whether the process would run a version older than the last two before an
// invocation that begins now is over. Such a process serves no more invocations, because a
// deployment begins only after the one before it has reached all processes.
func (p *process) replaced() bool {
	w := p.first.w
	d := &w.plan.deployments
	return len(d.versions) > 0 && d.newest(time.Since(w.born)+w.plan.timeout)-p.first.versionIndex() > 1
}

// options sets the options that differ between versions.
func (v version) options(o *lambdaidem.Options) {
	o.FingerprintSecrets, o.FingerprintIgnore = v.secrets, v.ignore
}

// leaveDoubt reports whether the guard may be unable to tell if two payloads differ, because
// two versions made their fingerprints in different ways.
func (d *deployments) leaveDoubt() bool {
	return len(d.versions) > 0 && d.versions[len(d.versions)-1].ignore != nil
}

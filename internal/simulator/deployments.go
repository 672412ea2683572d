package simulator

import (
	"math/rand/v2"
	"time"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// Deployments that change how fingerprints are made while requests are under way. During
// each deployment, processes of the version before it run beside the new ones.

// version is what one deployed version of the function says about fingerprints.
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

// rollouts are the changes that docs/operate.md describes under "Something changes in a
// deployment", in the order that it asks for. No retry is refused because of one of them:
// no payload has the member that the last one ignores.
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
	{ // a pointer in FingerprintIgnore
		{},
		{ignore: []string{"/sentAt"}},
	},
}

// newDeployments draws from a stream of its own, so that it moves nothing in a plan
// without deployments.
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

// newest returns the place of the newest version at a time since the world began.
func (d *deployments) newest(at time.Duration) int {
	return min(int(at/d.every), len(d.versions)-1)
}

// version returns the version that the actor's process runs.
func (a *actor) version() version {
	if d := &a.w.plan.deployments; len(d.versions) > 0 {
		return d.versions[a.runs()]
	}
	return version{}
}

// runs returns the place of the version that the actor's process runs. It is the newest
// one when the process starts, or the one before that if an invocation can end before the
// next deployment.
func (a *actor) runs() int {
	d, started := &a.w.plan.deployments, a.starter()
	at := started.began.Sub(a.w.born)
	newest := d.newest(at)
	if started.id%3 == 0 && at%d.every < d.every-a.w.plan.timeout {
		return max(newest-1, 0)
	}
	return newest
}

// replaced reports whether the process runs a version from before the last two. The next
// deployment begins only when the one before it is everywhere.
func (p *process) replaced() bool {
	w := p.first.w
	d := &w.plan.deployments
	return len(d.versions) > 0 && d.newest(time.Since(w.born))-p.first.runs() > 1
}

// options sets the options that differ between versions.
func (v version) options(o *lambdaidem.Options) {
	o.FingerprintSecrets, o.FingerprintIgnore = v.secrets, v.ignore
}

// leaveDoubt reports whether two fingerprints of different payloads may look as if only
// the versions that made them differed.
func (d *deployments) leaveDoubt() bool {
	return len(d.versions) > 0 && d.versions[len(d.versions)-1].ignore != nil
}

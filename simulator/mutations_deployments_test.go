//go:build !race

package simulator

import (
	"context"
	"fmt"
	"strings"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// deploymentMutations are mistakes that show only while two versions of a function make
// fingerprints in different ways.
var deploymentMutations = []mistake{
	{Mutation{Name: "only the first secret matches", Options: func(o *lambdaidem.Options) {
		if len(o.FingerprintSecrets) > 1 {
			o.FingerprintSecrets = o.FingerprintSecrets[:1]
		}
	}}, []Check{CheckMismatch}},
	{Mutation{Name: "another version's fingerprint taken for another payload", Store: otherVersions(func(recorded, _ string) string {
		return recorded + "0"
	})}, []Check{CheckMismatch}},
	{Mutation{Name: "another version's fingerprint taken for the same payload", Store: otherVersions(func(_, own string) string {
		return own
	})}, []Check{CheckOwnAnswer}},
	{Mutation{Name: "downstream key made of the fingerprint's settings too", Key: func(key string, r *run) string {
		v := r.actor.version()
		return fmt.Sprintf("%s %q %q", key, v.secrets, v.ignore)
	}}, []Check{CheckDownstreamKey}},
}

// otherVersions wraps a store so that Acquire returns changed fingerprints. It changes those
// of records whose fingerprint was made by another version than the claim's.
func otherVersions(change func(recorded, own string) string) func(lambdaidem.Store, *actor) lambdaidem.Store {
	return func(s lambdaidem.Store, _ *actor) lambdaidem.Store {
		return wrapped{Store: s, acquire: func(ctx context.Context, c lambdaidem.Claim) (lambdaidem.Record, error) {
			rec, err := s.Acquire(ctx, c)
			own, _, _ := strings.Cut(c.Fingerprint, ".")
			if recorded, _, _ := strings.Cut(rec.Fingerprint, "."); recorded != "" && recorded != own {
				rec.Fingerprint = change(rec.Fingerprint, c.Fingerprint)
			}
			return rec, err
		}}
	}
}

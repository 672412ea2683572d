package commands

import (
	"time"

	"github.com/spf13/pflag"

	"github.com/lambdaidem/toolkit/dynamostore"
)

// decisionFlags has the flags that release and settle have in common.
type decisionFlags struct {
	who      identity
	token    string
	ttl      time.Duration
	maxSkew  time.Duration
	force    bool
	again    bool // --again, which only settle has
	released bool // --released, which only settle has: a released record may be settled too
	operatorFlags
	confirmation

	// check returns an error if the command can't change the record. It is called before
	// the operator is asked to confirm. If it is nil, there is no such check.
	check func(dynamostore.Inspected) error
}

func (d *decisionFlags) flags(f *pflag.FlagSet) {
	d.who.flags(f)
	d.operatorFlags.flags(f)
	d.confirmation.flags(f)
	f.StringVar(&d.token, "token", "", "the token that show printed; if the record has another token by now, nothing is changed")
	ttlFlag(f, &d.ttl)
	maxSkewFlag(f, &d.maxSkew)
	f.BoolVar(&d.force, "force", false, "also change a record whose lease is live: its attempt may still be running, and have its effects after those of a retry")
}

// ttlFlag defines the flag --ttl of a command that ends attempts.
func ttlFlag(f *pflag.FlagSet, ttl *time.Duration) {
	f.DurationVar(ttl, "ttl", 24*time.Hour, "how long the record lasts from now on; use the guard's Options.TTL")
}

// maxSkewFlag defines the flag --max-skew of a command that acts as an operator.
func maxSkewFlag(f *pflag.FlagSet, maxSkew *time.Duration) {
	f.DurationVar(maxSkew, "max-skew", 2*time.Second, "the maximum difference between clocks; at least the guard's Options.MaxSkew")
}

// maxSkewOption returns the OperatorOptions.MaxSkew for a value of --max-skew. A MaxSkew
// of 0 selects the default of 2 s, so 1 ns stands for a --max-skew of 0.
func maxSkewOption(maxSkew time.Duration) time.Duration { return max(maxSkew, 1) }

// options sets the options of the Operator from the flags.
func (d *decisionFlags) options(o *dynamostore.OperatorOptions) {
	o.TTL, o.Force, o.Again, o.MaxSkew = d.ttl, d.force, d.again, maxSkewOption(d.maxSkew)
}

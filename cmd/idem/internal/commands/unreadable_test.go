package commands

import (
	"strings"
	"testing"
	"time"

	"github.com/lambdaidem/toolkit/dynamostore"
	"github.com/lambdaidem/toolkit/lambdaidem"
)

// renamedGuard returns a guard that uses renamed attributes, unknown to the command.
func (d *desk) renamedGuard(policy lambdaidem.Policy, set func(*dynamostore.Options)) *lambdaidem.Guard {
	store := dynamostore.New(d.client, d.table, func(o *dynamostore.Options) { o.AttemptTimeout = time.Minute; set(o) })
	return lambdaidem.New(store, func(o *lambdaidem.Options) {
		o.Namespace, o.Observer, o.Clock, o.Policy = "shop", lambdaidem.Discard, d.now, policy
	})
}

// A payment waits for an operator, but the command can't read its record. leases and watch must say
// that there is an item that they can't read.
func TestO2_AScanSaysWhatItCannotRead(t *testing.T) {
	for name, set := range map[string]func(*dynamostore.Options){
		"in_progress_expiration": func(o *dynamostore.Options) { o.InProgressExpirationAttribute = "locked_until" },
		"status":                 func(o *dynamostore.Options) { o.StatusAttribute = "state" },
		"both": func(o *dynamostore.Options) {
			o.StatusAttribute, o.InProgressExpirationAttribute = "state", "locked_until"
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := openDesk(t)
			d.clock = time.Now().Add(-3 * time.Hour)
			d.pay(d.renamedGuard(lambdaidem.Hold, set), "k", died)
			d.pay(d.guard, "done", paid) // a scan does not read finished records
			for args, want := range map[string]string{
				"leases --scan":          "among the items that can be read.\n(1 item can't be read",
				"watch --scan --looks 1": "1 item can't be read",
			} {
				if g := d.idem(strings.Fields(args)...); !strings.Contains(g.out, want) {
					t.Errorf("%s: exit code %d, %q %q; want %q", args, g.code, g.out, g.err, want)
				}
			}
			log := `{"outcome":"never_started","record":"r","token_hash":"h"}`
			g := d.at(Streams{In: strings.NewReader(log)}, "leases", "--scan", "--never-started", "-")
			if want := "never to have started, among the items that can be read.\n(1 item can't be read"; !strings.Contains(g.out, want) {
				t.Errorf("leases --never-started: exit code %d, %q %q; want %q", g.code, g.out, g.err, want)
			}
		})
	}
}

// If the expiration attribute is renamed, a record seems to have no expiry, like a held record. It
// must not be listed as held.
func TestO2_ARecordWithARenamedExpirationIsNotTakenForAHeldOne(t *testing.T) {
	d := openDesk(t)
	d.clock = time.Now().Add(-3 * time.Hour)
	set := func(o *dynamostore.Options) { o.ExpirationAttribute = "ttl" }
	d.pay(d.renamedGuard(lambdaidem.Rerun, set), "k", died)
	if g := d.idem("leases", "--scan"); strings.Contains(g.out, " held ") || !strings.Contains(g.out, "(1 item can't be read") {
		t.Errorf("leases: %q", g.out)
	}
	d.idem("purge", "--all", "--steps", "--reason", "r", "--yes").want(t, exitDone, "1 item is no record, or has renamed attributes")
	d.idem("leases", "--scan", "--attribute", "expiration=ttl").want(t, exitDone, "dead")
}

// An attempt died under policy Rerun, and a retry under policy Hold has met its record. The record
// now waits for an operator, so leases must list it as held.
func TestL6_ARecordThatHoldHasRefusedIsListedAsHeld(t *testing.T) {
	d := openDesk(t)
	d.clock = time.Now().Add(-23 * time.Hour)
	d.pay(d.guard, "k", died)
	d.clock = time.Now().Add(-time.Minute)
	if resp := d.pay(d.held(), "k", paid); resp.StatusCode != 409 {
		t.Fatalf("the retry gets %d %s", resp.StatusCode, resp.Body)
	}
	d.idem("leases", "--scan").want(t, exitDone, "held")
	d.clock = time.Now().Add(48 * time.Hour)
	if resp := d.pay(d.held(), "k", paid); resp.StatusCode != 409 {
		t.Errorf("after its TTL the retry gets %d %s", resp.StatusCode, resp.Body)
	}
}

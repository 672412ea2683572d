package chaos

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Report is what an audit found.
type Report struct {
	Requests  int
	ByStatus  map[int]int // the number of answers, by status
	Replays   int
	Keys      int // keys of the requests that were sent
	Completed int // keys with a completed record
	Payments  int
	Transfers int
	Effects   int // effects of transfers at the clearing house
	Retaken   int // attempts beyond the first one of their key

	// Findings are the breaches of the contract, one sentence each. It is empty if the books
	// are right.
	Findings []string
}

// Audit compares the tables and the outside effects with the answers. It reports each breach of
// these rules:
//
//   - Every 201 answer names a payment or transfer that exists and belongs to the same key.
//   - All 201 answers of a key have equal bytes, at most one of them is not a replay, and the
//     key's record is completed.
//   - A key whose record is completed has exactly one payment or transfer, and no key has two.
//     A key whose record is not completed has no payment, because the two are written together,
//     and no transfer beyond the state reserved.
//   - Every transfer is done in the end, and had one outside effect, of its own amount.
//   - No money was made or lost: the balances, the payments less their refunds, and the reserved
//     transfers add up to the opening balances.
//   - Each attempt beyond the first one of a key follows a request that failed, or a lease that
//     the test itself ended early: nobody takes over from an attempt that lives.
//   - Every payment and every transfer has a record, and no key has two records.
//   - Every answer is one that the contract allows for a valid request.
func (b Books) Audit() Report {
	byKey := b.byKey()
	r := Report{Requests: len(b.Answers), ByStatus: map[int]int{}, Payments: len(b.Payments), Transfers: len(b.Transfers), Effects: len(b.Effects)}
	owners := map[string]string{} // of payments and transfers, by ID
	for _, p := range b.Payments {
		owners[p.ID] = p.Key
	}
	for _, t := range b.Transfers {
		owners[t.ID] = t.Key
	}
	for _, a := range b.Answers {
		r.ByStatus[a.Status]++
		if a.Replayed {
			r.Replays++
		}
	}
	for _, key := range slices.Sorted(maps.Keys(byKey)) {
		account := byKey[key]
		if len(account.answers) > 0 {
			r.Keys++
		}
		if account.completed() {
			r.Completed++
		}
		r.Retaken += max(0, account.attempts()-1)
		for _, finding := range account.findings(owners) {
			r.Findings = append(r.Findings, "key "+key+": "+finding)
		}
	}
	r.Findings = append(r.Findings, b.effectFindings()...)
	r.Findings = append(r.Findings, b.moneyFindings()...)
	return r
}

// effectFindings compares the effects at the clearing house with the transfers.
func (b Books) effectFindings() []string {
	var found []string
	of := map[string][]Effect{}
	for _, e := range b.Effects {
		of[e.Transfer] = append(of[e.Transfer], e)
	}
	for _, t := range b.Transfers {
		effects := of[t.ID]
		delete(of, t.ID)
		if len(effects) != 1 || effects[0].Amount != t.Amount {
			found = append(found, fmt.Sprintf("key %s: the transfer %s of %d had the effects %+v outside; want one, of as much (E6)", t.Key, t.ID, t.Amount, effects))
		}
	}
	for _, id := range slices.Sorted(maps.Keys(of)) {
		found = append(found, fmt.Sprintf("the clearing house was told of %s, which was never made", id))
	}
	return found
}

// moneyFindings returns a finding if money was made or lost. It returns nil if the money is not
// counted.
func (b Books) moneyFindings() []string {
	if b.Money.Opened == 0 {
		return nil
	}
	has := b.Money.Balances
	for _, p := range b.Payments {
		has += p.Refundable
	}
	for _, t := range b.Transfers {
		if t.Status == reservedTransfer {
			has += t.Amount
		}
	}
	if has == b.Money.Opened {
		return nil
	}
	return []string{fmt.Sprintf("there were %d cents, and there are %d: %d in accounts, the rest paid or reserved (G1)", b.Money.Opened, has, b.Money.Balances)}
}

// String returns the report as text: the counts, then the findings.
func (r Report) String() string {
	var b strings.Builder
	line := func(name string, n int, note string) { fmt.Fprintf(&b, "  %-22s %8d  %s\n", name, n, note) }
	line("requests", r.Requests, "")
	for _, status := range slices.Sorted(maps.Keys(r.ByStatus)) {
		name := fmt.Sprintf("answers %d", status)
		if status == 0 {
			name = "connections broken"
		}
		line(name, r.ByStatus[status], "")
	}
	line("replays", r.Replays, "of the answers")
	line("keys", r.Keys, "")
	line("keys completed", r.Completed, "")
	line("payments", r.Payments, "")
	line("transfers", r.Transfers, "")
	line("effects outside", r.Effects, "")
	line("attempts beyond first", r.Retaken, "takeovers, and runs after a release")
	line("findings", len(r.Findings), "")
	for _, finding := range r.Findings {
		b.WriteString("  ! " + finding + "\n")
	}
	return b.String()
}

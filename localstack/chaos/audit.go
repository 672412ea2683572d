package chaos

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// Books holds everything that is known after a run.
type Books struct {
	Answers   []Answer   // every answer of every client
	Payments  []Payment  // the whole payments table, without the refunds
	Transfers []Transfer // the whole transfers table
	Effects   []Effect   // everything that the clearing house did
	Records   []Record   // the records of client requests in the idempotency table
	Money     Money

	// Robbed counts, by key, the live attempts whose lease the test itself ended early.
	Robbed map[string]int
}

// Answer is what a client got for one request.
type Answer struct {
	Key        string
	Status     int // 0: no answer, because the connection broke
	Replayed   bool
	RetryAfter string // the header's value
	Body       string
}

// Money is the money in all accounts together, in cents.
type Money struct {
	Opened   int64 // the sum of the opening balances; 0: the money is not counted
	Balances int64 // the sum of the balances now
}

// Payment is an item of the payments table.
type Payment struct {
	ID         string
	Key        string // of the request that asked for it
	Refundable int64  // the part of its amount that was not refunded
}

// Transfer is an item of the transfers table.
type Transfer struct {
	ID     string
	Key    string // of the request that asked for it
	Amount int64
	Status string
}

// States of a transfer.
const (
	reservedTransfer = "reserved"
	doneTransfer     = "done"
)

// Effect is what the clearing house did for one of the keys that it was called with.
type Effect struct {
	Transfer string // the ID of the transfer, as the function sent it
	Amount   int64
}

// Record is an item of the idempotency table.
type Record struct {
	Key     string
	State   lambdaidem.State
	Attempt int // how often the record was acquired or taken over
}

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

// account is the part of the books that belongs to one key.
type account struct {
	key       string
	answers   []Answer
	payments  []Payment
	transfers []Transfer
	records   []Record
	robbed    int
}

func (b Books) byKey() map[string]*account {
	accounts := map[string]*account{}
	of := func(key string) *account {
		if accounts[key] == nil {
			accounts[key] = &account{key: key}
		}
		return accounts[key]
	}
	for _, a := range b.Answers {
		of(a.Key).answers = append(of(a.Key).answers, a)
	}
	for _, p := range b.Payments {
		of(p.Key).payments = append(of(p.Key).payments, p)
	}
	for _, t := range b.Transfers {
		of(t.Key).transfers = append(of(t.Key).transfers, t)
	}
	for _, r := range b.Records {
		of(r.Key).records = append(of(r.Key).records, r)
	}
	for key, n := range b.Robbed {
		of(key).robbed = n
	}
	return accounts
}

func (a *account) completed() bool {
	return slices.ContainsFunc(a.records, func(r Record) bool { return r.State == lambdaidem.Completed })
}

func (a *account) attempts() int {
	most := 0
	for _, r := range a.records {
		most = max(most, r.Attempt)
	}
	return most
}

// failed returns the number of answers other than 201 and 409. At most that many attempts of the
// key can have died; some of these requests never started an attempt.
func (a *account) failed() int {
	n := 0
	for _, answer := range a.answers {
		if answer.Status != http.StatusCreated && answer.Status != http.StatusConflict {
			n++
		}
	}
	return n
}

func (a *account) findings(owners map[string]string) []string {
	return slices.Concat(a.countFindings(), a.createdFindings(owners), a.otherFindings())
}

// countFindings compares the payments, the transfers and the number of attempts with the records.
func (a *account) countFindings() []string {
	var found []string
	made := len(a.payments) + len(a.transfers)
	switch {
	case len(a.records) > 1:
		found = append(found, fmt.Sprintf("%d records; want one (F1)", len(a.records)))
	case made > 0 && len(a.records) == 0:
		found = append(found, fmt.Sprintf("%d payments and transfers, and no record", made))
	case made > 1:
		found = append(found, fmt.Sprintf("%d payments and transfers; want one, by whatever attempt (G1)", made))
	case made == 0 && a.completed():
		found = append(found, "completed, and nothing was made (E1)")
	case len(a.payments) > 0 && !a.completed():
		found = append(found, "a payment, and its record is not completed (E1)")
	}
	for _, t := range a.transfers {
		switch {
		case !a.completed() && t.Status != reservedTransfer:
			found = append(found, fmt.Sprintf("a transfer that is %s, and its record is not completed (E1)", t.Status))
		case t.Status != doneTransfer:
			found = append(found, fmt.Sprintf("a transfer that is %s in the end; want done", t.Status))
		}
	}
	attempts := a.attempts()
	if died := a.failed() + a.robbed; attempts-1 > died {
		found = append(found, fmt.Sprintf("%d attempts, but only %d requests that failed: one was taken over while it lived (L5)", attempts, died))
	}
	return found
}

// createdFindings checks the 201 answers.
func (a *account) createdFindings(owners map[string]string) []string {
	var found []string
	bodies, fresh := map[string]int{}, 0
	for _, answer := range a.answers {
		if answer.Status == http.StatusCreated {
			bodies[answer.Body]++
			if !answer.Replayed {
				fresh++
			}
		}
	}
	if len(bodies) == 0 {
		return nil
	}
	if !a.completed() {
		found = append(found, "answered by 201, and its record is not completed (X4)")
	}
	if len(bodies) > 1 {
		found = append(found, fmt.Sprintf("%d different 201 answers (G3): %s", len(bodies), strings.Join(slices.Sorted(maps.Keys(bodies)), " and ")))
	}
	if fresh > 1 {
		found = append(found, fmt.Sprintf("%d of its 201 answers are not replays; want one at most (G3)", fresh))
	}
	for _, body := range slices.Sorted(maps.Keys(bodies)) {
		var shown struct{ ID string }
		if err := json.Unmarshal([]byte(body), &shown); err != nil || shown.ID == "" {
			found = append(found, fmt.Sprintf("a 201 answer names nothing that was made: %q", body))
			continue
		}
		switch owner, there := owners[shown.ID]; {
		case !there:
			found = append(found, fmt.Sprintf("a 201 answer names %s, which was never made", shown.ID))
		case owner != a.key:
			found = append(found, fmt.Sprintf("a 201 answer names %s, which is key %s's (G3)", shown.ID, owner))
		}
	}
	return found
}

// otherFindings checks the answers with other statuses.
func (a *account) otherFindings() []string {
	found := map[string]bool{}
	for _, answer := range a.answers {
		if answer.Status == 0 || answer.Status == http.StatusCreated {
			continue
		}
		var doc struct{ Code string }
		_ = json.Unmarshal([]byte(answer.Body), &doc) // a gateway's own answer has no code
		switch {
		case !slices.Contains(legitimate[answer.Status], doc.Code):
			found[fmt.Sprintf("an answer that no valid request may get: %d %s", answer.Status, answer.Body)] = true
		case answer.RetryAfter == "" && strings.HasPrefix(doc.Code, "idempotency_"):
			found[fmt.Sprintf("%d %s without Retry-After", answer.Status, doc.Code)] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// legitimate has the codes that a valid request may get, by status. The empty code stands for an
// answer of the gateway's own, given because the function died.
var legitimate = map[int][]string{
	http.StatusConflict:            {string(lambdaidem.ErrInProgress)},
	http.StatusInternalServerError: {"", "demo_failure"},
	http.StatusServiceUnavailable: {"", "demo_out_of_time", string(lambdaidem.ErrStoreUnavailable),
		string(lambdaidem.ErrOutOfTime), string(lambdaidem.ErrOutcomeUnknown), "clearing_unavailable"},
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

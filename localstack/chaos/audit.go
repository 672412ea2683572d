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

// Books are everything that is known after a run.
type Books struct {
	Answers  []Answer  // all that any client got
	Payments []Payment // the whole payments table
	Records  []Record  // the whole idempotency table

	// Robbed are the attempts, by key, whose lease the test itself gave away
	// while they were alive and well.
	Robbed map[string]int
}

// Answer is what a client got for one request.
type Answer struct {
	Key        string
	Status     int // 0: no answer, the connection broke
	Replayed   bool
	RetryAfter string // the header's value
	Body       string
}

// Payment is an item of the payments table.
type Payment struct {
	ID   string
	Key  string // of the request that asked for it
	Runs int    // how many runs of the handler wrote it
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
	ByStatus  map[int]int // answers
	Replays   int
	Keys      int // that a request was sent with
	Completed int // keys with a completed record
	Payments  int
	Repeated  int // runs that wrote a payment which was there already
	Retaken   int // attempts beyond the first one of their key

	// Findings are the breaches of the contract, a sentence each. None: all is
	// right.
	Findings []string
}

// Audit holds the payments and the records against the answers:
//
//   - every 201 has its payment, and it is its own key's;
//   - all 201 answers of a key are equal to the byte, one at most is no replay
//     (G3), and the key's record is completed (X4);
//   - no key has two payments, since a payment's ID comes from the record, and a
//     completed one has one;
//   - a payment was written by at most as many runs of the handler as its key had
//     attempts, and by exactly one if the first attempt completed it (G2, L6);
//   - each attempt beyond the first one of a key is explained by a request for
//     it that failed: nobody takes over from an attempt that lives (L5);
//   - no payment is without a record, and no key has two;
//   - no answer is another than the contract knows for a valid request.
func (b Books) Audit() Report {
	byKey := b.byKey()
	r := Report{Requests: len(b.Answers), ByStatus: map[int]int{}, Payments: len(b.Payments)}
	owners := map[string]string{} // of payments, by ID
	for _, p := range b.Payments {
		owners[p.ID] = p.Key
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
		r.Repeated += max(0, account.runs()-1)
		r.Retaken += max(0, account.attempts()-1)
		for _, finding := range account.findings(owners) {
			r.Findings = append(r.Findings, "key "+key+": "+finding)
		}
	}
	return r
}

// account is what the books say of one key.
type account struct {
	key      string
	answers  []Answer
	payments []Payment
	records  []Record
	robbed   int
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

// runs is how many runs of the handler made or met the key's payment.
func (a *account) runs() int {
	n := 0
	for _, p := range a.payments {
		n += p.Runs
	}
	return n
}

// failed is how many requests had neither the payment nor a conflict for an
// answer: those of attempts that died, and of some that never ran.
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

// countFindings compares payments and runs with attempts.
func (a *account) countFindings() []string {
	var found []string
	attempts, payments, runs := a.attempts(), len(a.payments), a.runs()
	switch {
	case len(a.records) > 1:
		found = append(found, fmt.Sprintf("%d records; want one (F1)", len(a.records)))
	case payments > 0 && len(a.records) == 0:
		found = append(found, fmt.Sprintf("%d payments and no record", payments))
	case payments > 1:
		found = append(found, fmt.Sprintf("%d payments; want one, by whatever attempt", payments))
	case attempts == 1 && a.completed() && runs != 1:
		found = append(found, fmt.Sprintf("paid by %d runs, though its first attempt completed it; want one", runs))
	case runs > attempts:
		found = append(found, fmt.Sprintf("paid by %d runs in %d attempts; at most one each (L6)", runs, attempts))
	case payments == 0 && a.completed():
		found = append(found, "completed without a payment")
	}
	if died := a.failed() + a.robbed; attempts-1 > died {
		found = append(found, fmt.Sprintf("%d attempts, but only %d requests that failed: one was taken over while it lived (L5)", attempts, died))
	}
	return found
}

// createdFindings judges the 201 answers.
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
			found = append(found, fmt.Sprintf("a 201 answer names no payment: %q", body))
			continue
		}
		switch owner, there := owners[shown.ID]; {
		case !there:
			found = append(found, fmt.Sprintf("a 201 answer names %s, which was never made", shown.ID))
		case owner != a.key:
			found = append(found, fmt.Sprintf("a 201 answer names %s, the payment of key %s (G3)", shown.ID, owner))
		}
	}
	return found
}

// otherFindings judges the rest of the answers.
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

// legitimate are the codes that a valid request may get, by status; an empty
// code is the gateway's own answer, in the place of a function that died.
var legitimate = map[int][]string{
	http.StatusConflict:            {string(lambdaidem.ErrInProgress)},
	http.StatusInternalServerError: {"", "demo_failure"},
	http.StatusServiceUnavailable: {"", "demo_out_of_time", string(lambdaidem.ErrStoreUnavailable),
		string(lambdaidem.ErrOutOfTime), string(lambdaidem.ErrOutcomeUnknown)},
	http.StatusGatewayTimeout: {"payment_unknown"},
}

// String is the report for a reader: the counts, then the findings.
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
	line("runs repeated", r.Repeated, "whose payment was there already: the attempt before had died")
	line("attempts beyond first", r.Retaken, "takeovers, and runs after a release")
	line("findings", len(r.Findings), "")
	for _, finding := range r.Findings {
		b.WriteString("  ! " + finding + "\n")
	}
	return b.String()
}

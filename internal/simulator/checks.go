package simulator

import "fmt"

// Checks are the invariants, by name, with the rules that they hold a run
// against.
var Checks = map[string]string{
	"completed never changes": "G3: a completed record never changes before it expires",
	"lease before lock":       "L2, L6: nothing is written over a lease that is live by the clock of the world",
	"fenced":                  "L3: only the attempt whose token stands there completes or releases",
	"attempt raised":          "L6: every takeover raises the attempt number",
	"lease outlives":          "L5: a lease ends no earlier than its attempt's deadline, and MaxSkew",
	"expiry":                  "L7: what is in progress expires no earlier than its lease ends, and MaxSkew, and 1 s",
	"own record":              "F1, F2: nobody writes to another's record",
	"lock first":              "L2: a record begins with a lock",
	"replay":                  "R1, G3: every replay equals the answer that the record stored",
	"own answer":              "G3: nobody's answer comes from another's record, or from another payload",
	"first answer":            "X6: an attempt's own answer is sent only if it is the record's",
	"stored endings":          "X1, X2: only answers that the outcome rule stores are stored",
	"panic goes on":           "X2: a panic of the handler reaches the caller",
	"one at a time":           "G3: at most one attempt runs at a time",
	"one run":                 "X2: the guard runs the handler once in an invocation",
	"recognised":              "L4: an attempt knows its own lease and its own completion, though the reply was lost",
	"expired":                 "L7: nothing replays that has expired",
	"held":                    "G2, X2: under policy hold nothing runs twice after an uncertain end",
	"unstuck":                 "L6: under policy rerun no record is stuck beyond its lease",
	"in time":                 "L5, L8, X4, X5: every answer leaves before the invocation's deadline",
	"effect kept":             "X4: an attempt that met no fault records the effect that it had",
	"clean-up":                "X2, X3: a process that lives releases what it must, however its request ended",
	"conflict is busy":        "X9: a transaction conflict never fails open",
	"unknown released":        "X5: an acquire that may have landed is released before the answer goes out",
	"linearizable":            "G3: the clients' view fits one order of runs and replays",
	"harness":                 "the simulator itself",
}

// Violation is a broken rule.
type Violation struct {
	Check string // its name in the table of checks
	What  string
}

// judge holds a book against the rules. Some checks must look at the moment when
// something happens: the book asks them then, under w.mu, before it enters what
// happened (begin, event, write) or after (answered). The others read the book
// when all is quiet.
type judge struct {
	b     *book
	wrong []Violation
}

func (j *judge) broken(a *actor, check, format string, args ...any) {
	j.b.w.mu.Lock()
	defer j.b.w.mu.Unlock()
	j.brokenLocked(a, check, format, args...)
}

func (j *judge) brokenLocked(a *actor, check, format string, args ...any) {
	what := fmt.Sprintf(format, args...)
	j.wrong = append(j.wrong, Violation{check, what})
	j.b.noteLocked(a, "BROKEN %s: %s", check, what)
}

// conclude holds the whole book against the rules, once all is quiet.
func (j *judge) conclude() {
	for _, ans := range j.b.answers {
		j.checkAnswer(ans)
	}
	for _, h := range j.b.sorted() {
		j.checkRuns(h)
	}
	j.checkLinearizable()
}

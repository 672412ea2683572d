package commands

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// matcher decides which records a purge erases. It also counts the records that each flag
// matches by itself, and remembers parts of their scopes. With them, a purge that matches
// nothing reports which flag may be mistyped, and a purge by caller lists what it does not
// erase although it may belong to the same person.
type matcher struct {
	*findings
	tests  []*flagTest
	caller string // the value of --caller as a scope has it; empty without the flag
}

// findings has what a matcher reports at the end of a purge. A journal keeps it, so that the
// report of a purge that was resumed covers the whole purge.
type findings struct {
	Records int `json:"records"` // that were compared
	Chosen  int `json:"chosen"`  // of these, that match every flag

	Flags map[string]*flagFindings `json:"flags"` // by the name of the flag

	Alike   map[string]bool `json:"alike"`   // callers other than that of --caller that may be the same person, at most seenAtMost
	Unnamed int             `json:"unnamed"` // records without a caller that match every flag but --caller
	Routes  map[string]bool `json:"routes"`  // namespace and route of the unnamed records, at most seenAtMost
}

// flagFindings has what a matcher found for one flag.
type flagFindings struct {
	Records int             `json:"records"` // that fit the flag
	Seen    map[string]bool `json:"seen"`    // values of other records, at most seenAtMost
}

func newFindings() *findings {
	return &findings{Flags: map[string]*flagFindings{}, Alike: map[string]bool{}, Routes: map[string]bool{}}
}

const callerFlag = "--caller"

// flagTest is the test of one flag.
type flagTest struct {
	flag, want string
	fits       func(lambdaidem.Record, *lambdaidem.RecordScope) bool // a nil scope: no guard made it
	part       func(*lambdaidem.RecordScope) string                  // what want is compared with; nil: no part of the scope
	*flagFindings
}

// seenAtMost bounds the memory of a purge of a table with many callers.
const seenAtMost = 1000

// matcher returns a matcher for the filter that adds to found. Ages count from now, which is
// the database's time.
func (f filter) matcher(a ages, now time.Time, found *findings) *matcher {
	m := &matcher{findings: found, caller: lambdaidem.ScopePart(f.Caller)}
	add := func(flag, want string, part func(*lambdaidem.RecordScope) string) {
		if want != "" {
			m.add(&flagTest{flag: flag, want: want, part: part,
				fits: func(_ lambdaidem.Record, s *lambdaidem.RecordScope) bool { return s != nil && part(s) == want }})
		}
	}
	add("--namespace", lambdaidem.ScopePart(f.Namespace), func(s *lambdaidem.RecordScope) string { return s.Namespace })
	if method, route, ok := strings.Cut(f.Route, " "); ok && method == strings.ToUpper(method) {
		add("--route", method+" "+lambdaidem.ScopePart(route), func(s *lambdaidem.RecordScope) string { return s.Method + " " + s.Route })
	} else { // an operation, which may have spaces, or a route of any method
		add("--route", lambdaidem.ScopePart(f.Route), func(s *lambdaidem.RecordScope) string { return s.Route })
	}
	add(callerFlag, m.caller, func(s *lambdaidem.RecordScope) string { return s.Principal })
	add("--tenant", lambdaidem.ScopePart(f.Tenant), func(s *lambdaidem.RecordScope) string { return s.Tenant })
	if a.least > 0 {
		m.add(&flagTest{flag: "--older-than", want: f.Older,
			fits: func(rec lambdaidem.Record, _ *lambdaidem.RecordScope) bool {
				return endOf(rec).Before(now.Add(-a.least))
			}})
	}
	if !a.since.IsZero() {
		m.add(&flagTest{flag: "--since", want: f.Since,
			fits: func(rec lambdaidem.Record, _ *lambdaidem.RecordScope) bool { return !endOf(rec).Before(a.since) }})
	}
	return m
}

// add adds the test of a flag, with what was found for the flag before.
func (m *matcher) add(t *flagTest) {
	if m.Flags[t.flag] == nil {
		m.Flags[t.flag] = &flagFindings{Seen: map[string]bool{}}
	}
	t.flagFindings = m.Flags[t.flag]
	m.tests = append(m.tests, t)
}

// endOf returns when a record was completed, or when it began if it wasn't.
func endOf(rec lambdaidem.Record) time.Time {
	if rec.CompletedAt.IsZero() {
		return rec.StartedAt
	}
	return rec.CompletedAt
}

// match reports whether the record fits every flag. A record whose scope no guard
// made fits no flag that compares a part of the scope.
func (m *matcher) match(rec lambdaidem.Record) bool {
	var scope *lambdaidem.RecordScope
	if s, err := lambdaidem.ParseScope(rec.Scope); err == nil {
		scope = &s
	}
	m.Records++
	all, others := true, true // others: every flag but --caller
	for _, t := range m.tests {
		if t.fits(rec, scope) {
			t.Records++
			continue
		}
		all = false
		others = others && t.flag == callerFlag
		if t.part != nil && scope != nil && len(t.Seen) < seenAtMost && t.part(scope) != "" {
			t.Seen[t.part(scope)] = true
		}
	}
	if all {
		m.Chosen++
	}
	if m.caller != "" && scope != nil {
		m.remember(scope, others)
	}
	return all
}

// remember notes a record that a purge by caller does not erase although it may hold data
// of the same person: one without a caller, or one whose caller is like that of --caller.
// others reports whether the record matches all other flags.
func (m *matcher) remember(scope *lambdaidem.RecordScope, others bool) {
	switch {
	case scope.Principal == "":
		if !others {
			return
		}
		m.Unnamed++
		if len(m.Routes) < seenAtMost {
			m.Routes[routeOf(scope)] = true
		}
	case len(m.Alike) < seenAtMost && alike(m.caller, scope.Principal):
		m.Alike[scope.Principal] = true
	}
}

// routeOf returns the parts of a scope that say what was called.
func routeOf(scope *lambdaidem.RecordScope) string {
	if scope.Method == "" {
		return scope.Namespace + " " + scope.Route
	}
	return scope.Namespace + " " + scope.Method + " " + scope.Route
}

// alike reports whether two callers that differ may be one person: one subject under
// two issuers, or texts that differ by two characters at most.
func alike(caller, other string) bool {
	const most = 2
	if caller == other {
		return false
	}
	if subject := subjectOf(caller); subject != "" && subject == subjectOf(other) {
		return true
	}
	return max(len(caller)-len(other), len(other)-len(caller)) <= most*utf8.UTFMax && edits(caller, other) <= most
}

// subjectOf returns the part of a caller after its issuer; empty: it has no issuer.
func subjectOf(caller string) string {
	if at := strings.LastIndexByte(caller, '|'); at >= 0 {
		return caller[at+1:]
	}
	return ""
}

// comparedView is what one flag was compared with, as programs get it.
type comparedView struct {
	Flag    string   `json:"flag"`
	Value   string   `json:"value"`   // as it was compared: as it stands in a scope
	Records int      `json:"records"` // that fit this flag
	Nearest []string `json:"nearest,omitempty"`
}

// compared explains a purge that matched nothing; nil: it matched something.
func (m *matcher) compared() (views []comparedView) {
	if m.Chosen > 0 {
		return nil
	}
	for _, t := range m.tests {
		v := comparedView{Flag: t.flag, Value: t.want, Records: t.Records}
		if t.Records == 0 {
			v.Nearest = nearest(t.want, t.Seen)
		}
		views = append(views, v)
	}
	return views
}

// nearest returns the three values that differ least from want, the nearest first.
func nearest(want string, seen map[string]bool) []string {
	type candidate struct {
		value string
		edits int
	}
	var all []candidate
	for value := range seen {
		all = append(all, candidate{value, edits(want, value)})
	}
	slices.SortFunc(all, func(x, y candidate) int { return cmp.Or(x.edits-y.edits, strings.Compare(x.value, y.value)) })
	const most = 3
	var values []string
	for _, c := range all[:min(most, len(all))] {
		values = append(values, c.value)
	}
	return values
}

// edits returns how many characters must be inserted, deleted or replaced to turn
// one text into the other (the Levenshtein distance).
func edits(from, to string) int {
	x, y := []rune(from), []rune(to)
	row := make([]int, len(y)+1) // of x[:i] to each y[:j]
	for j := range row {
		row[j] = j
	}
	for i := range x {
		diagonal := row[0]
		row[0] = i + 1
		for j := range y {
			replaced := diagonal
			if x[i] != y[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(y)]
}

// callersAlike returns the callers that may be the same person as the one of --caller,
// sorted. It returns nil if nothing matched: compared names the nearest callers then.
func (m *matcher) callersAlike() []string {
	if m.Chosen == 0 {
		return nil
	}
	return slices.Sorted(maps.Keys(m.Alike))
}

// text prints compared, if the purge has matched nothing, and what a purge by caller leaves.
func (m *matcher) text(to printer, compared []comparedView) {
	m.comparedText(to, compared)
	if others := m.callersAlike(); len(others) > 0 {
		say(to, "%s like this one, and not purged. The same person?\n", counted(len(others), "caller is", "callers are"))
		list(to, others)
	}
	if m.Unnamed > 0 {
		say(to, "%s no caller, so --caller can't tell whose they are (choose them by --namespace and --route):\n",
			counted(m.Unnamed, "record names", "records name"))
		list(to, slices.Sorted(maps.Keys(m.Routes)))
	}
}

// list prints one value a line, up to ten.
func list(to printer, values []string) {
	const most = 10
	for _, value := range values[:min(most, len(values))] {
		say(to, "  %s\n", clip(value))
	}
	if more := len(values) - most; more > 0 {
		say(to, "  and %d more (--output json has all)\n", more)
	}
}

func (m *matcher) comparedText(to printer, compared []comparedView) {
	if len(compared) == 0 {
		return
	}
	say(to, "Nothing matched. Each flag was compared with %s:\n", counted(m.Records, "record", "records"))
	for _, c := range compared {
		say(to, "  %s %s matches %d", c.Flag, clip(c.Value), c.Records)
		for i, value := range c.Nearest {
			if i == 0 {
				say(to, "; the nearest: %s", clip(value))
			} else {
				say(to, ", %s", clip(value))
			}
		}
		say(to, "\n")
	}
}

package commands

import (
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// matcher decides which records a purge erases. It also counts the records that each flag
// matches by itself, and remembers values of the other records. So if a purge matches
// nothing, it can report which flag may be mistyped. And a purge by caller can list records
// that it does not erase although they may belong to the same person.
type matcher struct {
	*findings
	tests  []*flagTest
	caller string // the value of --caller, escaped as in a scope; "" without the flag

	ids      map[string]bool // the records given by their ids; nil if there are none
	restored *restoredData   // nil without --forget and --since
}

const (
	callerFlag = "--caller"
	sinceFlag  = "--since"
	idsFlag    = "RECORD"
)

// flagTest tests whether records match one flag.
type flagTest struct {
	flag, want string
	fits       func(lambdaidem.Record, *lambdaidem.RecordScope) bool // reports a match; the scope is nil if it can't be parsed
	part       func(*lambdaidem.RecordScope) string                  // returns the part of the scope to compare with want; nil if the flag compares ids or ages
	*flagFindings
}

// matcher returns a matcher for the filter, which adds its findings to found. now is the
// database's time; the ages are relative to it.
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
	} else { // the name of an operation, which may contain spaces, or a route with any method
		add("--route", lambdaidem.ScopePart(f.Route), func(s *lambdaidem.RecordScope) string { return s.Route })
	}
	add(callerFlag, m.caller, func(s *lambdaidem.RecordScope) string { return s.Principal })
	if f.IDPrefix != "" {
		m.add(&flagTest{flag: "--id-prefix", want: f.IDPrefix,
			fits: func(rec lambdaidem.Record, _ *lambdaidem.RecordScope) bool {
				return lambdaidem.IDPrefixOf(rec.ID) == f.IDPrefix
			}})
	}
	add("--tenant", lambdaidem.ScopePart(f.Tenant), func(s *lambdaidem.RecordScope) string { return s.Tenant })
	if a.least > 0 {
		m.add(&flagTest{flag: "--older-than", want: f.Older,
			fits: func(rec lambdaidem.Record, _ *lambdaidem.RecordScope) bool {
				return endOf(rec).Before(now.Add(-a.least))
			}})
	}
	switch {
	case !a.until.IsZero():
		m.restored = &restoredData{point: a.since, until: a.until, maxSkew: a.maxSkew, now: now}
		m.add(&flagTest{flag: sinceFlag, want: f.Since,
			fits: func(rec lambdaidem.Record, _ *lambdaidem.RecordScope) bool { return m.restored.canForget(rec) }})
	case !a.since.IsZero():
		m.add(&flagTest{flag: sinceFlag, want: f.Since,
			fits: func(rec lambdaidem.Record, _ *lambdaidem.RecordScope) bool { return !endOf(rec).Before(a.since) }})
	}
	if f.IDs != "" {
		m.ids = map[string]bool{}
		for _, id := range strings.Fields(f.IDs) {
			m.ids[id] = true
		}
		m.add(&flagTest{flag: idsFlag, want: f.IDs,
			fits: func(rec lambdaidem.Record, _ *lambdaidem.RecordScope) bool { return m.ids[rec.ID] }})
	}
	return m
}

// add adds the test of a flag. The test continues with the findings for the flag in the
// journal, if there are any.
func (m *matcher) add(t *flagTest) {
	if m.Flags[t.flag] == nil {
		m.Flags[t.flag] = &flagFindings{Seen: map[string]bool{}}
	}
	t.flagFindings = m.Flags[t.flag]
	m.tests = append(m.tests, t)
}

// endOf returns when a record was completed. If it is not completed, endOf returns when its
// current attempt began.
func endOf(rec lambdaidem.Record) time.Time {
	if rec.CompletedAt.IsZero() {
		return rec.StartedAt
	}
	return rec.CompletedAt
}

// match reports whether the record matches every flag. If the scope of the record can't be
// parsed, the record matches no flag that compares a part of the scope.
//
// Purge also calls match for each part of an answer, with a record that has no State; see
// [dynamostore.Operator.Purge]. A part does not count as a record.
func (m *matcher) match(rec lambdaidem.Record) bool {
	var scope *lambdaidem.RecordScope
	if s, err := lambdaidem.ParseScope(rec.Scope); err == nil {
		scope = &s
	}
	if rec.State == lambdaidem.Absent {
		return m.matchPart(rec, scope)
	}
	m.Records++
	var missed []string // the flags that don't match
	for _, t := range m.tests {
		if t.fits(rec, scope) {
			t.Records++
			continue
		}
		missed = append(missed, t.flag)
		if t.part != nil && scope != nil && len(t.Seen) < seenAtMost && t.part(scope) != "" {
			t.Seen[t.part(scope)] = true
		}
	}
	if len(missed) == 0 {
		m.Chosen++
		m.rememberTenant(rec.ID, scope)
	}
	if m.restored != nil && slices.Equal(missed, []string{sinceFlag}) && m.restored.mustDecide(rec) {
		m.Doubtful = append(m.Doubtful, doubtfulOf(rec, m.restored.now))
	}
	if m.ids[rec.ID] {
		m.Named[rec.ID] = true
	}
	if m.caller != "" && scope != nil {
		m.remember(scope, slices.Equal(missed, []string{callerFlag}))
	}
	return len(missed) == 0
}

// notFound returns the ids of the records that were given and not found, sorted.
func (m *matcher) notFound() (ids []string) {
	for _, id := range slices.Sorted(maps.Keys(m.ids)) {
		if !m.Named[id] {
			ids = append(ids, id)
		}
	}
	return ids
}

// matchPart reports whether a part of an answer matches every flag.
func (m *matcher) matchPart(part lambdaidem.Record, scope *lambdaidem.RecordScope) bool {
	for _, t := range m.tests {
		if !t.fits(part, scope) {
			return false
		}
	}
	m.Chosen++ // otherwise a purge that deletes only parts would say that nothing matched
	m.rememberTenant(part.ID, scope)
	return true
}

// rememberTenant adds the tenant of a chosen record or part to the findings. Tenants may have
// callers of the same name, so a purge by caller may erase more than its operator means.
func (m *matcher) rememberTenant(id string, scope *lambdaidem.RecordScope) {
	if len(m.IDPrefixes) < seenAtMost {
		m.IDPrefixes[lambdaidem.IDPrefixOf(id)] = true
	}
	if scope != nil && len(m.Tenants) < seenAtMost {
		m.Tenants[scope.Tenant] = true
	}
}

// routeOf returns the namespace, the method and the route of a scope.
func routeOf(scope *lambdaidem.RecordScope) string {
	if scope.Method == "" {
		return scope.Namespace + " " + scope.Route
	}
	return scope.Namespace + " " + scope.Method + " " + scope.Route
}

// alike reports whether two different callers may be the same person: they have the same
// subject under two issuers, or they differ by at most two characters.
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

// subjectOf returns the part of a caller after the issuer, or "" if the caller has no
// issuer.
func subjectOf(caller string) string {
	if at := strings.LastIndexByte(caller, '|'); at >= 0 {
		return caller[at+1:]
	}
	return ""
}

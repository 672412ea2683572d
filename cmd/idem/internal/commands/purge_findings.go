package commands

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// findings has what a matcher reports at the end of a purge. It is saved in the journal, so
// that the report of a purge that was resumed covers the whole purge.
type findings struct {
	Records int `json:"records"` // records that were compared
	Chosen  int `json:"chosen"`  // records, and parts of answers, that match every flag

	Flags map[string]*flagFindings `json:"flags"` // the findings for each flag, by the name of the flag

	Alike   map[string]bool `json:"alike"`   // other callers that may be the same person as --caller, at most seenAtMost
	Unnamed int             `json:"unnamed"` // records without a caller that match every flag except --caller
	Routes  map[string]bool `json:"routes"`  // namespace and route of the records counted in Unnamed, at most seenAtMost

	// The tenants of the records that match every flag, at most seenAtMost of each kind. "" stands
	// for the records of no tenant.
	IDPrefixes map[string]bool `json:"idPrefixes"` // the ID prefixes of their guards
	Tenants    map[string]bool `json:"tenants"`    // their Lambda tenant ids

	// Doubtful has all records that an operator must decide after restored data; see
	// restoredData.mustDecide. It has no limit, because an operator must miss none.
	Doubtful []doubtfulView `json:"doubtful,omitempty"`

	Named map[string]bool `json:"named"` // the records that were given by their ids, and found
}

// flagFindings has what a matcher found for one flag.
type flagFindings struct {
	Records int             `json:"records"` // records that match the flag
	Seen    map[string]bool `json:"seen"`    // values of records that don't match, at most seenAtMost
}

func newFindings() *findings {
	return &findings{Flags: map[string]*flagFindings{}, Alike: map[string]bool{}, Routes: map[string]bool{}, IDPrefixes: map[string]bool{}, Tenants: map[string]bool{}, Named: map[string]bool{}}
}

// seenAtMost limits the values that a matcher remembers of each kind, and so the memory of
// a purge of a table with many callers.
const seenAtMost = 1000

// remember adds a record to the findings if a purge by caller does not erase it although it
// may hold data of the same person. Such a record has no caller, or its caller is similar
// to that of --caller. others reports whether the record matches all other flags.
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

// comparedView says how many records match one flag of a purge, as --output json prints it.
type comparedView struct {
	Flag    string   `json:"flag"`
	Value   string   `json:"value"`             // the value of the flag, escaped as in a scope
	Records int      `json:"records"`           // records that match this flag
	Nearest []string `json:"nearest,omitempty"` // if no record matches: the most similar values
}

// compared returns the findings for each flag if no record matched all flags, so that the
// operator can find the mistyped one. Otherwise it returns nil. It also returns nil if records were
// given by their ids; see notFound.
func (m *matcher) compared() (views []comparedView) {
	if m.Chosen+len(m.Doubtful) > 0 || m.ids != nil {
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

// nearest returns up to three of the values seen, those most similar to want first.
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
	row := make([]int, len(y)+1) // row[j] is the distance between x[:i] and y[:j]
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

// tenants returns the keys of IDPrefixes or Tenants, sorted. It returns nil if the records
// belong to no tenant.
func tenants(seen map[string]bool) []string {
	if len(seen) == 1 && seen[""] {
		return nil
	}
	return slices.Sorted(maps.Keys(seen))
}

// callersAlike returns the callers that may be the same person as that of --caller, sorted.
// It returns nil if no record matched, because compared then lists the nearest callers.
func (m *matcher) callersAlike() []string {
	if m.Chosen == 0 {
		return nil
	}
	return slices.Sorted(maps.Keys(m.Alike))
}

// text prints compared, the tenants of the chosen records, and the records that a purge by
// caller leaves although they may belong to the same person.
func (m *matcher) text(to printer, compared []comparedView) {
	m.comparedText(to, compared)
	if prefixes := tenants(m.IDPrefixes); len(prefixes) > 0 {
		say(to, "The records have %s, one for each tenant (--id-prefix chooses one):\n", counted(len(prefixes), "ID prefix", "ID prefixes"))
		list(to, prefixes)
	}
	if ids := tenants(m.Tenants); len(ids) > 0 {
		say(to, "The records have %s (--tenant chooses one):\n", counted(len(ids), "Lambda tenant id", "Lambda tenant ids"))
		list(to, ids)
	}
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

func (m *matcher) comparedText(to printer, compared []comparedView) {
	if len(compared) == 0 {
		return
	}
	say(to, "Nothing matched. Each flag was compared with %s:\n", counted(m.Records, "record", "records"))
	for _, c := range compared {
		say(to, "  %s %s matches %d", c.Flag, clip(unescaped(c.Value)), c.Records)
		for i, value := range c.Nearest {
			if i == 0 {
				say(to, "; the nearest: %s", clip(unescaped(value)))
			} else {
				say(to, ", %s", clip(unescaped(value)))
			}
		}
		say(to, "\n")
	}
}

// list prints the values, one per line, up to ten.
func list(to printer, values []string) {
	const most = 10
	for _, value := range values[:min(most, len(values))] {
		say(to, "  %s\n", clip(cmp.Or(unescaped(value), "(none)")))
	}
	if more := len(values) - most; more > 0 {
		say(to, "  and %d more (--output json has all)\n", more)
	}
}

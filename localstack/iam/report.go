package iam

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
)

// Report writes the refused requests, the permissions that were used, and those that were not.
func (c *Checker) Report(w io.Writer) {
	var refused, unused, used [][]string
	for _, use := range c.Uses() {
		if !use.Allowed {
			refused = append(refused, []string{use.Function, fmt.Sprintf("%s ×%d", use.Request.Action, use.Count), short(use.Request.Resource)})
		}
	}
	elsewhere := map[string]bool{}
	for _, group := range groups(c.Permissions()) {
		var with, without []string
		for _, p := range group {
			switch {
			case p.Elsewhere:
				service, _, _ := strings.Cut(p.Action, ":")
				elsewhere[service] = true
			case p.Used > 0:
				with = append(with, fmt.Sprintf("%s ×%d", p.Action, p.Used))
			default:
				without = append(without, p.Action)
			}
		}
		resources := make([]string, len(group[0].Resources))
		for i, resource := range group[0].Resources {
			resources[i] = short(resource)
		}
		row := func(actions []string) []string {
			return []string{group[0].Function, strings.Join(actions, ", "), strings.Join(resources, ", "), group[0].At[strings.LastIndex(group[0].At, "/")+1:]}
		}
		if len(with) > 0 {
			used = append(used, row(with))
		}
		if len(without) > 0 {
			unused = append(unused, row(without))
		}
	}
	section(w, "Refused, as AWS would:", refused)
	section(w, "Granted and used:", used)
	section(w, "Granted and not used yet (a failure, a rare path or an operator may still need it):", unused)
	if len(elsewhere) > 0 {
		_, _ = fmt.Fprintf(w, "Not checked, because no such service runs here: %s\n", strings.Join(slices.Sorted(maps.Keys(elsewhere)), ", "))
	}
}

// groups returns the permissions of each function that have the same place in the template and
// the same resources. All statements of a managed policy have the place of the function.
func groups(all []Permission) [][]Permission {
	var out [][]Permission
	for i, p := range all {
		if i == 0 || all[i-1].Function != p.Function || all[i-1].At != p.At || !slices.Equal(all[i-1].Resources, p.Resources) {
			out = append(out, nil)
		}
		out[len(out)-1] = append(out[len(out)-1], p)
	}
	return out
}

// short returns the part of an ARN after the account.
func short(arn string) string {
	parts := strings.SplitN(arn, ":", 6)
	return cmp.Or(parts[len(parts)-1], arn)
}

func section(w io.Writer, title string, rows [][]string) {
	if len(rows) == 0 {
		return
	}
	_, _ = fmt.Fprintln(w, title)
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		_, _ = fmt.Fprintln(table, "  "+strings.Join(row, "\t"))
	}
	_ = table.Flush() // the rows are only information
}

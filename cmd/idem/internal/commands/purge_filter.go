package commands

import (
	"strings"
)

// filter selects records by their scope and age. It has the values of the flags.
type filter struct {
	Namespace string `json:"namespace,omitempty"`
	Route     string `json:"route,omitempty"` // the method, a space and the route; or an operation
	Caller    string `json:"caller,omitempty"`
	Tenant    string `json:"tenant,omitempty"`
	IDPrefix  string `json:"idPrefix,omitempty"`
	Older     string `json:"olderThan,omitempty"`
	Since     string `json:"since,omitempty"`
	Until     string `json:"until,omitempty"`
	IDs       string `json:"ids,omitempty"` // the records given by their ids, separated by spaces
	All       bool   `json:"all,omitempty"`
}

// says describes the selected records for a prompt.
func (f filter) says() string {
	if f.IDs != "" {
		return "with these ids: " + f.IDs
	}
	if f.All && f.Older+f.Since == "" {
		return "of the whole table"
	}
	var parts []string
	for _, one := range []struct{ name, is string }{
		{"namespace", f.Namespace}, {"route", f.Route}, {"caller", f.Caller}, {"tenant", f.Tenant}, {"ID prefix", f.IDPrefix}, {"older than", f.Older}, {"since", f.Since}, {"until", f.Until},
	} {
		if one.is != "" {
			parts = append(parts, one.name+" "+one.is)
		}
	}
	switch {
	case f.IDPrefix+f.Tenant == "":
		parts = append(parts, "of every tenant (any ID prefix, any Lambda tenant id)")
	case f.IDPrefix == "":
		parts = append(parts, "any ID prefix")
	case f.Tenant == "":
		parts = append(parts, "any Lambda tenant id")
	}
	return "of " + strings.Join(parts, ", ")
}

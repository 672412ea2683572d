package iam

import (
	"maps"
	"slices"
	"strings"
)

// grant counts the uses of one permission, which is an entry of Action in a statement that allows.
type grant struct {
	action string // entry of Action, or a description of NotAction
	used   int
}

// Permission is a permission that a policy of a function grants.
type Permission struct {
	Function  string   // logical ID
	Action    string   // entry of Action, such as dynamodb:PutItem
	Resources []string // those of the statement
	At        string   // place of the statement in the template
	Policy    string   // name of the policy, may be empty

	// Used is the number of requests that the permission allowed. A request that several
	// permissions allow counts for each of them.
	Used int

	// Elsewhere is true if the permission is for a service that does not run locally, so
	// that its use is not counted.
	Elsewhere bool
}

// Use counts the requests of a function with the same action, resource and result.
type Use struct {
	Function string // logical ID
	Request  Request
	Count    int
	Allowed  bool
}

// Permissions returns all permissions of all functions, in the order of the template, with
// their use so far. It leaves out statements that deny.
func (c *Checker) Permissions() []Permission {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []Permission
	for _, f := range c.template.Functions {
		p := c.principals[f.LogicalID]
		for _, s := range p.statements {
			if s.deny {
				continue
			}
			entries, resources := s.Actions, s.Resources
			if len(s.NotActions) > 0 {
				entries = []string{"NotAction"}
			}
			if len(resources) == 0 {
				resources = []string{"everything but " + strings.Join(s.NotResources, ", ")}
			}
			for _, entry := range entries {
				g := s.grants[entry]
				all = append(all, Permission{
					Function: f.LogicalID, Action: g.action, Resources: resources, At: s.At, Policy: s.Policy, Used: g.used,
					Elsewhere: len(s.Actions) > 0 && !concerns(entry),
				})
			}
		}
	}
	return all
}

// Uses returns the requests that functions and their event source mappings made, sorted by
// function, action and resource. Each Use has the condition keys of its first request.
func (c *Checker) Uses() []Use {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.SortedFunc(maps.Values(c.uses), func(a, b Use) int {
		return strings.Compare(a.Function+" "+a.Request.Action+" "+a.Request.Resource, b.Function+" "+b.Request.Action+" "+b.Request.Resource)
	})
}

// count counts a request. It reports whether the request is the first with its function, action,
// resource and result.
func (c *Checker) count(function string, r Request, d Decision) (first bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := useKey{function, r.Action, r.Resource, d.Allowed}
	use, seen := c.uses[key]
	if !seen {
		use = Use{Function: function, Request: r, Allowed: d.Allowed}
	}
	use.Count++
	c.uses[key] = use
	for _, g := range d.used {
		g.used++
	}
	return !seen
}

type useKey struct {
	function, action, resource string
	allowed                    bool
}

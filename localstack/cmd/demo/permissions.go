package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/lambdaidem/toolkit/localstack/iam"
)

// permissions checks that no call of a function was refused. It shows which permissions the
// story did not need.
func (d *demo) permissions(context.Context) error {
	var refused []string
	for _, use := range d.iam.Uses() {
		if !use.Allowed {
			refused = append(refused, fmt.Sprintf("%s: %s on %s", use.Function, use.Request.Action, use.Request.Resource))
		}
	}
	granted := slices.DeleteFunc(d.iam.Permissions(), func(p iam.Permission) bool { return p.Elsewhere })
	unused := map[string][]string{}
	used := 0
	for _, p := range granted {
		if p.Used > 0 {
			used++
			continue
		}
		resource := p.Resources[0][strings.LastIndexByte(p.Resources[0], ':')+1:]
		place := p.Function + ", " + resource
		unused[place] = append(unused[place], p.Action)
	}
	d.out.check(len(refused) == 0, fmt.Sprintf("nothing was refused; of the %d permissions on tables, streams and queues, %d were used", len(granted), used), refused)
	for _, p := range granted {
		place := p.Function + ", " + p.Resources[0][strings.LastIndexByte(p.Resources[0], ':')+1:]
		if actions := unused[place]; actions != nil {
			d.out.note("not needed by this story: %s (%s)", strings.Join(actions, ", "), place)
			delete(unused, place)
		}
	}
	return nil
}

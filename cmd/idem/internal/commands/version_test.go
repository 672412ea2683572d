package commands

import (
	"runtime/debug"
	"testing"
)

func TestVersion_NamesTheCommitOfACheckout(t *testing.T) {
	installed := &debug.BuildInfo{Main: debug.Module{Version: "v0.1.0"}}
	built := &debug.BuildInfo{Main: debug.Module{Version: "v0.1.0"}, Settings: []debug.BuildSetting{
		{Key: "vcs", Value: "git"},
		{Key: "vcs.revision", Value: "6f6e3a1"},
	}}
	for _, c := range []struct {
		info *debug.BuildInfo
		ok   bool
		want string
	}{
		{nil, false, "unknown"},
		{&debug.BuildInfo{}, true, "unknown"},
		{installed, true, "v0.1.0"},
		{built, true, "v0.1.0, commit 6f6e3a1"},
	} {
		if got := version(c.info, c.ok); got != c.want {
			t.Errorf("%+v: version %q, want %q", c.info, got, c.want)
		}
	}
}

package quota

import (
	"path/filepath"
	"testing"
)

// leave moves the process back to its own cgroup.
func TestLimitEndsWhenItIsLeft(t *testing.T) {
	leave, err := Limit(128)
	if err != nil {
		t.Skip("there is no right to limit processor time here:", err)
	}
	limited, v2, err := ownCgroup()
	if err != nil {
		t.Fatal(err)
	}
	if err := leave(); err != nil {
		t.Fatal(err)
	}
	after, _, err := ownCgroup()
	if err != nil || after != filepath.Dir(limited) {
		t.Errorf("the process is in %s, %v; want it back in %s", after, err, filepath.Dir(limited))
	}
	t.Logf("version 2: %v", v2)
}

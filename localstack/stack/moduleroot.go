package stack

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// moduleRoot returns this project's folder, which is the working directory or a parent of it.
func moduleRoot() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find the project's folder: %w", err)
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && strings.HasPrefix(string(text), modulePath) {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("%s is not inside a checkout of github.com/lambdaidem/toolkit: "+
				"run this from one, since it builds the functions that are in it, or name a template of your own (up: -template FILE)", start)
		}
	}
}

// modulePath is the first line of this project's go.mod.
const modulePath = "module github.com/lambdaidem/toolkit\n"

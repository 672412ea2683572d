package commands

import (
	"runtime/debug"
)

// version returns the version of the module that the go command recorded in the binary, or
// "unknown", and the commit if the binary was built in a checkout. It takes the results of
// [debug.ReadBuildInfo].
func version(info *debug.BuildInfo, ok bool) string {
	if !ok || info.Main.Version == "" {
		return "unknown"
	}
	for _, setting := range info.Settings {
		if setting.Key == "vcs.revision" {
			return info.Main.Version + ", commit " + setting.Value
		}
	}
	return info.Main.Version
}

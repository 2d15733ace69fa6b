// runc without seccomp and without networks of pods: takes both out of a container's configuration, and becomes the runc
// beside it.
//
// The kubelet asks for the default filter for each sandbox, and a runc that was built without libseccomp refuses that. With
// this one, a node needs no C library that is not there wherever a C compiler is. Containers of the tests are our own.
//
// Without a network namespace of its own a pod reaches everything on the machine's loopback, the API server among it, and
// its own address there is one that the node's CNI plugin has given it. Its manifest says nothing of that.
package main

import (
	"encoding/json"
	"log"
	"os"
	"path/filepath"
	"slices"
	"syscall"
)

func main() {
	for at, argument := range os.Args {
		if argument == "--bundle" && at+1 < len(os.Args) {
			if err := rewrite(filepath.Join(os.Args[at+1], "config.json")); err != nil {
				log.Fatal(err)
			}
		}
	}
	runc := filepath.Join(filepath.Dir(os.Args[0]), "runc")
	log.Fatal(syscall.Exec(runc, append([]string{runc}, os.Args[1:]...), os.Environ()))
}

type namespace struct {
	Type string `json:"type"`
	Path string `json:"path,omitempty"`
}

func rewrite(path string) error {
	raw, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var config map[string]json.RawMessage
	if err := json.Unmarshal(raw, &config); err != nil {
		return err
	}
	var linux map[string]json.RawMessage
	if err := json.Unmarshal(config["linux"], &linux); err != nil {
		return err
	}
	delete(linux, "seccomp")
	var namespaces []namespace
	if err := json.Unmarshal(linux["namespaces"], &namespaces); err != nil {
		return err
	}
	isNetwork := func(one namespace) bool { return one.Type == "network" }
	if linux["namespaces"], err = json.Marshal(slices.DeleteFunc(namespaces, isNetwork)); err != nil {
		return err
	}
	if config["linux"], err = json.Marshal(linux); err != nil {
		return err
	}
	if raw, err = json.Marshal(config); err != nil {
		return err
	}
	return os.WriteFile(path, raw, 0o600)
}

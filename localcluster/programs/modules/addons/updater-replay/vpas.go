package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"testing/synctest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	vpatypes "k8s.io/autoscaler/vertical-pod-autoscaler/pkg/apis/autoscaling.k8s.io/v1"
)

// vpaServer is the API server for the one VPA, as a client's transport: listing, and watching with what there is as
// first events (`sendInitialEvents`).
type vpaServer struct {
	vpa      *vpatypes.VerticalPodAutoscaler
	version  int
	watchers []*io.PipeWriter
}

func newVPAServer(vpa *vpatypes.VerticalPodAutoscaler) *vpaServer {
	server := &vpaServer{}
	server.update(vpa)
	return server
}

// update makes this the VPA, and returns when all who watch it have seen it.
func (s *vpaServer) update(vpa *vpatypes.VerticalPodAutoscaler) {
	s.version++
	s.vpa = vpa.DeepCopy()
	s.vpa.APIVersion, s.vpa.Kind = "autoscaling.k8s.io/v1", "VerticalPodAutoscaler"
	s.vpa.ResourceVersion = strconv.Itoa(s.version)
	for _, watcher := range s.watchers {
		send(watcher, watch.Modified, s.vpa)
	}
	synctest.Wait()
}

// RoundTrip answers one request.
func (s *vpaServer) RoundTrip(request *http.Request) (*http.Response, error) {
	query := request.URL.Query()
	if query.Get("watch") == "" {
		list := vpatypes.VerticalPodAutoscalerList{Items: []vpatypes.VerticalPodAutoscaler{*s.vpa}}
		list.ResourceVersion = s.vpa.ResourceVersion
		body, err := json.Marshal(list)
		must(err)
		return response(request, io.NopCloser(bytes.NewReader(body))), nil
	}
	reader, writer := io.Pipe()
	s.watchers = append(s.watchers, writer)
	if query.Get("sendInitialEvents") == "true" {
		bookmark := &vpatypes.VerticalPodAutoscaler{TypeMeta: s.vpa.TypeMeta}
		bookmark.ResourceVersion = s.vpa.ResourceVersion
		bookmark.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
		first := s.vpa
		go func() {
			send(writer, watch.Added, first)
			send(writer, watch.Bookmark, bookmark)
		}()
	}
	return response(request, reader), nil
}

func send(to io.Writer, kind watch.EventType, vpa *vpatypes.VerticalPodAutoscaler) {
	event := map[string]any{"type": kind, "object": vpa}
	_ = json.NewEncoder(to).Encode(event) // who watched may be gone
}

func response(request *http.Request, body io.ReadCloser) *http.Response {
	header := http.Header{"Content-Type": {"application/json"}}
	return &http.Response{StatusCode: http.StatusOK, Header: header, Body: body, Request: request}
}

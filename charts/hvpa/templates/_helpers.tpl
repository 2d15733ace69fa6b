{{- /* What names begin with: the release's name, with the chart's where that is not part of it. */ -}}
{{- define "hvpa.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 53 | trimSuffix "-" }}
{{- else if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 53 | trimSuffix "-" }}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 53 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- define "hvpa.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "hvpa.fullname" .) .Values.serviceAccount.name }}
{{- else -}}
{{- required "serviceAccount.name: needed where serviceAccount.create is false" .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{- /* The same as in config/: a Deployment's selector can't be changed, and `make deploy` can be taken over. */ -}}
{{- define "hvpa.selectorLabels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
{{- end }}

{{- define "hvpa.labels" -}}
{{ include "hvpa.selectorLabels" . }}
{{ include "hvpa.releaseLabels" . }}
{{- end }}

{{- define "hvpa.dashboardLabels" -}}
app.kubernetes.io/name: hvpa-dashboard
{{ include "hvpa.releaseLabels" . }}
{{- end }}

{{- define "hvpa.releaseLabels" -}}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "hvpa.image" -}}
{{- $repository := required "image.repository: needed, since no image is published (docs/getting-started.md has how to build one)" .Values.image.repository }}
{{- if .Values.image.digest -}}
{{ $repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ $repository }}:{{ default .Chart.AppVersion .Values.image.tag }}
{{- end }}
{{- end }}

{{- define "hvpa.priorityClassName" -}}
{{- if .Values.priorityClass.create }}{{ include "hvpa.fullname" . }}{{ else }}{{ .Values.priorityClass.name }}{{ end }}
{{- end }}

{{- define "hvpa.sizeAtCreation" -}}
{{- if eq .Values.sizeAtCreation "Auto" }}
{{- .Capabilities.APIVersions.Has "admissionregistration.k8s.io/v1/MutatingAdmissionPolicy" }}
{{- else }}
{{- eq .Values.sizeAtCreation "Always" }}
{{- end }}
{{- end }}

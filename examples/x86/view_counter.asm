; Who is counted does not see 0 in the counter.
; source: S. Conchon, D. Declerck, F. Zaïdi, Compiling parameterized x86-TSO concurrent programs to
; Cubicle-W, 2017 (appendix A, `$t:x`)
; expect: sc holds, tso holds, pso holds

begin shared_data
    c dd 0 ! as counter
end shared_data
begin unsafe_prop
    eip[$t] = in && $t:c = 0
end unsafe_prop
begin init_code
    start_threads
end init_code
begin thread_code
enter: lock inc dword [c]
in:    nop
       lock dec dword [c]
       jmp enter
end thread_code

; The sense-reversing barrier passed again and again. Threads may be one
; round apart, and then their senses agree; somebody who has left and somebody who has yet to come
; in the same round have different senses.
; source: S. Conchon, D. Declerck, F. Zaïdi, Compiling parameterized x86-TSO concurrent programs to
; Cubicle-W, 2017
; expect: sc holds (explicit: undecided), tso holds (explicit: undecided), pso holds (explicit: undecided)

begin shared_data
    sense dd 0
    count dd N ! as counter
end shared_data

begin unsafe_prop
    eip[$t1] = entr && eip[$t2] = end && esi[$t1] <> esi[$t2]
end unsafe_prop

begin init_code
    start_threads
end init_code

begin thread_code
      mov esi, 0          ; esi = local sense
entr: not esi
      lock dec dword [count]
      jne spin
last: mov dword [count], N
      mov dword [sense], esi
      jmp end
spin: cmp dword [sense], esi
      jne spin
end:  jmp entr
end thread_code
